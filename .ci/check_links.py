"""Check the links of built HTML: python check_links.py FOLDER. Asks no network.

Files and anchors inside the folder must be there; what leads out of it is listed.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The anchors of a page, and what it links to with the line."""

    def __init__(self, path: Path):
        super().__init__()
        self.anchors = {"", "top"}
        self.links: list[tuple[str, int]] = []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect."""
        for name, value in attrs:
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value or "")
            elif name in ("href", "src") and value:
                self.links.append((value, self.getpos()[0]))


def main(folder: Path) -> int:
    """Print what is wrong and what leads out; return how many links are wrong."""
    pages = {path.resolve(): Page(path) for path in sorted(folder.rglob("*.html"))}
    outside, wrong, inside = set(), 0, 0
    for path, page in pages.items():
        for link, line in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if parts.scheme != "data":
                    outside.add(link)
                continue
            inside += 1
            target = path
            if parts.path:
                target = (path.parent / unquote(parts.path)).resolve()
            if target.is_dir():
                target /= "index.html"
            anchor = unquote(parts.fragment)
            if not target.is_file():
                reason = "no such file"
            elif target in pages and anchor not in pages[target].anchors:
                reason = "no such anchor"
            else:
                continue
            wrong += 1
            print(f"{path.relative_to(folder.resolve())}:{line}: {link}: {reason}")
    print("Not looked at, since they lead out:", *sorted(outside), sep="\n  ")
    print(f"{inside} links in {len(pages)} pages, {wrong} wrong")
    # Nothing at all to check is a build that failed.
    return wrong if inside else 1


if __name__ == "__main__":
    sys.exit(min(main(Path(sys.argv[1])), 1))
