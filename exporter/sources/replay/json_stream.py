"""Reads a large JSON document piece by piece with the standard decoder: one element at a time is in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TextIO

CHUNK = 1 << 18  # characters read at once
LONGEST = 1 << 21  # characters that one element or one top-level value may have; an event of a real trace has thousands
NEAR_THE_END = 16  # an error this close to what was read may be a cut literal, number or escape, all shorter than this


class JsonStreamError(ValueError):
    """The text is not JSON, or ends in the middle."""


class JsonStream:
    """A cursor over the text of a file."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._decoder = json.JSONDecoder()
        self._buffer, self._at, self._ended = "", 0, False
        self.keys: set[str] = set()  # of the top level, as far as it was read

    def members(self, bare: str) -> Iterator[tuple[str, Any]]:
        """(key, value) of the top-level object. The elements of an array come one by one, as (key, element).

        A document that is an array itself is taken for the array of key ``bare``.
        """
        if self._peek() == "[":
            self.keys.add(bare)
            for element in self._elements():
                yield bare, element
            return
        self._expect("{")
        if self._accept("}"):
            return
        while True:
            key = self._value()
            self._expect(":")
            self.keys.add(str(key))
            if self._peek() == "[":
                for element in self._elements():
                    yield key, element
            else:
                yield key, self._value()
            if not self._accept(","):
                break
        self._expect("}")

    def _elements(self) -> Iterator[Any]:
        self._expect("[")
        if self._accept("]"):
            return
        while True:
            yield self._value()
            if not self._accept(","):
                break
            if self._peek() == "]":  # some writers leave a comma behind
                break
        self._expect("]")

    def _value(self) -> Any:
        self._peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._buffer, self._at)
            except (ValueError, RecursionError) as error:  # ValueError: Python refuses integers of thousands of digits
                if not self._may_be_cut(error) or not self._more():
                    raise JsonStreamError(self._complaint(error)) from error
                continue
            if isinstance(value, int | float) and len(self._buffer) - end < 4 and not self._ended:
                self._more()  # the number may go on in the next piece: 1 . 5, 1 e+5
                continue
            self._at = end
            return value

    def _may_be_cut(self, error: Exception) -> bool:
        """Whether more text may help; else the rest of a large file would be read for nothing."""
        if not isinstance(error, json.JSONDecodeError):
            return False
        return error.msg.startswith("Unterminated") or error.pos + NEAR_THE_END >= len(self._buffer)

    def _peek(self) -> str:
        """The next character that is not white space; '' at the end."""
        while True:
            while self._at < len(self._buffer) and self._buffer[self._at] in " \t\r\n\ufeff":
                self._at += 1
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._more():
                return ""

    def _accept(self, char: str) -> bool:
        found = self._peek() == char
        self._at += found
        return found

    def _expect(self, char: str) -> None:
        if not self._accept(char):
            found = self._peek()
            raise JsonStreamError(f"expected {char!r}, found {found!r}" if found else "the JSON is cut off")

    def _more(self) -> bool:
        """Read on; False at the end of the file."""
        if self._ended:
            return False
        left = len(self._buffer) - self._at
        if left > LONGEST:
            raise JsonStreamError(f"one value is longer than {LONGEST} characters")
        piece = self._file.read(max(CHUNK, left))  # twice as much each time, so that a long value is not read n times
        self._buffer, self._at, self._ended = self._buffer[self._at :] + piece, 0, not piece
        return bool(piece)

    def _complaint(self, error: Exception) -> str:
        near = self._buffer[self._at : self._at + 40].replace("\n", " ")
        cut = isinstance(error, json.JSONDecodeError) and (
            error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated")
        )
        return "the JSON is cut off" if cut else f"not JSON near {near!r} ({error})"
