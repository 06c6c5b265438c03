"""YAML that means one thing: a key given twice is refused, where YAML silently takes the last."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import yaml


def load(text: str | bytes) -> object:
    """The document of a text; None for an empty one. ValueError, in one line, for what is not YAML."""
    try:
        return yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError(f"is not YAML: {' '.join(str(error).split())}") from error


class _Loader(yaml.SafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [key.value for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} is given twice", node.start_mark)
        return super().construct_mapping(node, deep=deep)
