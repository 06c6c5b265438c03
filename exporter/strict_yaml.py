"""YAML that means one thing: a key given twice is refused, where YAML silently takes the last.

Merge keys (``<<``) are refused as well: some lines of them grow to more than any memory.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import yaml


def load(text: str | bytes) -> object:
    """The document of a text; None for an empty one. ValueError, in one line, for what is not YAML."""
    try:
        return yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError, LookupError, ArithmeticError, AttributeError, RecursionError) as error:
        # the last ones: PyYAML on values whose tag promises another type, such as `!!int ""` or `!!bool x`
        raise ValueError(f"is not YAML: {' '.join(str(error).split())}") from error


class _Loader(yaml.SafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if key.tag == "tag:yaml.org,2002:merge":
                raise _refused("merge keys (<<) are not taken: write the keys out", key)
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise _refused(f"the key {key.value!r} is given twice", node)
                seen.add(key.value)
        return super().construct_mapping(node, deep=deep)

    def construct_whole_number(self, node: yaml.ScalarNode) -> int:
        """One of 64 bits: Python does not even print those of some thousand digits."""
        number = int(self.construct_yaml_int(node))
        if abs(number) >= 1 << 63:
            raise _refused("a whole number of more than 64 bits", node)
        return number

    def construct_text(self, node: yaml.ScalarNode) -> str:
        """One that has a UTF-8: "\\uD800" alone has none, and would fail where it is first used."""
        text = str(self.construct_yaml_str(node))
        if any("\ud800" <= each <= "\udfff" for each in text):
            raise _refused("a text with half of a surrogate pair", node)
        return text


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_whole_number)
_Loader.add_constructor("tag:yaml.org,2002:str", _Loader.construct_text)


def _refused(problem: str, node: yaml.Node) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
