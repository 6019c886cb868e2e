"""Print the one shell command of the README that contains a word."""

import re
import sys
from pathlib import Path

word = sys.argv[1]
text = Path("README.md").read_text(encoding="utf-8")
commands = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
found = [command for command in commands if word in command]
if len(found) != 1:
    sys.exit(f"README.md has {len(found)} sh fences with {word!r}, not one")
print(found[0], end="")
