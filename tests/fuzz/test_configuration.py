"""Configuration files, web configuration files, tables of peaks, the environment: any text of YAML, any values."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from exporter import strict_yaml
from exporter.config.loading import load
from exporter.config.option import Command
from exporter.config.options import OPTIONS
from exporter.config.settings import ConfigError
from exporter.hardware.peaks import PeakTable
from exporter.hardware.row import read_rows
from exporter.web.web_config import Security, WebConfigError
from tests.fuzz.budget import fuzzed
from tests.fuzz.mutation import mutated_json, mutated_text, odd_texts
from tests.fuzz.refusal import may_refuse

HASH = "$2b$04$" + "." * 53
CONFIG: dict[str, Any] = {
    "source": {"type": "dcgm-exporter", "url": "http://127.0.0.1:9400/metrics"},
    "sampling": {"interval": "1s"},
    "web": {"listen-address": [":9836"], "telemetry-path": "/metrics"},
    "metrics": {"profile": "default", "exclude": ["honest_gpu_ecc_*"]},
    "cost": {"price-per-hour": ["*H100*=2.50"], "currency": "EUR"},
    "log": {"level": "info", "format": "json"},
}
WEB: dict[str, Any] = {
    "tls_server_config": {
        "cert_file": "web.yml",
        "key_file": "server.key",
        "min_version": "TLS12",
        "max_version": "TLS13",
        "client_auth_type": "RequireAndVerifyClientCert",
        "client_ca_file": "ca.crt",
        "client_allowed_sans": ["a.example"],
        "cipher_suites": ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"],
        "prefer_server_cipher_suites": True,
        "curve_preferences": ["X25519"],
    },
    "http_server_config": {"http2": False, "headers": {"X-Frame-Options": "deny", "Content-Security-Policy": "x"}},
    "basic_auth_users": {"alice": HASH},
}
PEAKS: list[Any] = [
    {
        "names": ["H100*"],
        "model": "H100",
        "source": "x",
        "multiprocessors": 132,
        "reference_clock_hertz": 1.8e9,
        "flops": {"fp16": 9.9e14},
        "mig": {"compute_slices": 7, "memory_slices": 8},
        "attainable": {"tensor": 0.8},
    }
]
TOKENS = (
    *("!!int ''", "!!bool x", "!!set [a]", "!!map x", "!!binary é", "!!timestamp x", "!!python/object:os.system x"),
    *(
        "&a ",
        "*a",
        "<<: *a",
        "<<: [*a, *a]",
        "? [x]\n: ",
        "- ",
        ": ",
        "\n  ",
        "{",
        "}",
        "[",
        "]",
        "|",
        ">",
        "%",
        "@",
        "'",
    ),
    *(
        "0x" + "f" * 9000,
        "9" * 9000,
        "1:1:1",
        "2020-99-99",
        ".nan",
        ".inf",
        "~",
        "---",
        "\x00",
        "\ud800",
        "\t",
        "\ufeff",
    ),
)


def texts(document: Any) -> st.SearchStrategy[bytes]:
    """The document as YAML, with wrong values or with wrong text."""
    dumped = yaml.safe_dump(document)
    values = mutated_json(document).map(lambda changed: yaml.safe_dump(changed, allow_unicode=True))
    text = mutated_text(dumped, TOKENS) | st.lists(st.sampled_from(TOKENS), max_size=8).map("".join) | values
    return text.map(lambda each: each.encode(errors="surrogatepass")) | st.binary(max_size=50)


@fuzzed()
@given(texts(CONFIG), st.dictionaries(st.sampled_from([option.variable for option in OPTIONS]), odd_texts, max_size=2))
def test_any_configuration(tmp_path: Path, text: bytes, environment: dict[str, str]) -> None:
    path = tmp_path / "c.yml"
    path.write_bytes(text)
    with may_refuse(ConfigError):
        load(Command.SERVE, {"config": str(path)}, environment)


@fuzzed(200)
@given(
    st.sampled_from(OPTIONS),
    odd_texts | mutated_text("1h30m500ms *H100*=2.50 nvidia.com/gpu sm_launch=0.3", ("=", "/", "e9")),
)
def test_any_value_of_any_option(option: Any, text: str) -> None:
    with may_refuse(ValueError) as told:
        option.parse(text)
    assert all(told)


@fuzzed()
@given(texts(WEB))
def test_any_web_configuration(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "web.yml"
    path.write_bytes(text)
    with may_refuse(WebConfigError) as told:
        Security.load(path, lambda _: None)
    assert all(str(path) in text for text in told)


@fuzzed()
@given(texts(PEAKS))
def test_any_table_of_peaks(text: bytes) -> None:
    with may_refuse(ValueError) as told:
        PeakTable(read_rows(strict_yaml.load(text), "the added peaks"))
    assert all("added peaks" in text or "YAML" in text for text in told)


@pytest.mark.parametrize(
    "text", [r'tls_server_config: {cert_file: "\uD800", key_file: x}', r'basic_auth_users: {"\uDFFF": x}']
)
def test_half_of_a_surrogate_pair(tmp_path: Path, text: str) -> None:
    path = tmp_path / "web.yml"
    path.write_text(text)
    with pytest.raises(WebConfigError, match="surrogate"):
        Security.load(path, lambda _: None)


LAUGHS = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
MERGES = "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n}\n  <<: [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))


@pytest.mark.parametrize(
    "text",
    [
        LAUGHS,
        MERGES,
        "".join(f"k{n}: 1\n" for n in range(10_000)),
        "[" * 2000,
        "a: &a {b: *a}",
        "source: &s {source: *s}",
    ],
    ids=["laughs", "merges", "many keys", "deep", "its own child", "its own child, known key"],
)
def test_small_texts_do_not_grow(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c.yml"
    path.write_text(text)
    started = time.process_time()
    with pytest.raises(ConfigError):
        load(Command.SERVE, {"config": str(path)}, {})
    with pytest.raises(WebConfigError):
        Security.load(path, lambda _: None)
    assert time.process_time() - started < 60  # it would be hours
