"""Options: override, environment, default."""

from __future__ import annotations

import threading

import pytest

from ixion.base import config
from ixion.base.errors import ConfigError


def test_order_of_resolution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IXION_OPT_LEVEL", raising=False)
    assert config.get("opt_level") == 3
    monkeypatch.setenv("IXION_OPT_LEVEL", "1")
    assert config.get("opt_level") == 1
    with config.override(opt_level=2):
        assert config.get("opt_level") == 2
        with config.override(opt_level=0, verify=True):
            assert config.get("opt_level") == 0
            assert config.get("verify") is True
        assert config.get("opt_level") == 2
    assert config.get("opt_level") == 1


@pytest.mark.parametrize(
    ("text", "value"), [("1", True), ("on", True), ("False", False), ("", False)]
)
def test_truth_in_the_environment(monkeypatch: pytest.MonkeyPatch, text: str, value: bool) -> None:
    monkeypatch.setenv("IXION_VERIFY", text)
    assert config.get("verify") is value


def test_malformed_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IXION_THREADS", "many")
    with pytest.raises(ConfigError, match="IXION_THREADS"):
        config.get("threads")
    with pytest.raises(ConfigError, match="did you mean 'threads'"):
        config.get("thread")
    with pytest.raises(ConfigError, match="opt_level"), config.override(opt_level="fast"):
        pass
    with pytest.raises(ConfigError), config.override(opt_level=True):
        pass


def test_an_option_is_defined_once() -> None:
    config.define("opt_level", int, 3, config.OPTIONS["opt_level"].doc)
    with pytest.raises(ConfigError, match="already"):
        config.define("opt_level", int, 4, "another")


def test_overrides_stay_in_their_thread() -> None:
    seen = []
    with config.override(opt_level=0):
        thread = threading.Thread(target=lambda: seen.append(config.get("opt_level")))
        thread.start()
        thread.join()
    assert seen == [3]
