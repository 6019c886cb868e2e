"""What is raised where a law and its statements disagree."""


class LawError(ValueError):
    """A noise law does not do what it states."""
