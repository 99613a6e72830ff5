"""How weights are stored, as data: options of their own method only, checked, named for people."""

import pytest

from playground.checks import ConfigError
from playground.config import ModelSpec, describe_model
from playground.presets import load_preset
from playground.quantization import DEFAULT_CALIBRATION, Quantization, QuantizationMethod


def test_an_option_that_is_not_given_takes_its_methods_default():
    gptq = Quantization("gptq", group_size=64)
    assert (gptq.bits, gptq.group_size, gptq.act_order, gptq.calibration) == (4, 64, False, DEFAULT_CALIBRATION)
    assert gptq.double_quantization is None and gptq.threshold is None
    assert Quantization("bnb-nf4").double_quantization is True
    assert Quantization("bnb-nf4") == Quantization("bnb-nf4", double_quantization=True), "one copy of the weights"
    assert Quantization() == Quantization("none") and Quantization().is_none


@pytest.mark.parametrize(
    ("options", "field", "allowed"),
    [
        ({"method": "int3"}, "method", "gptq"),
        ({"method": "none", "bits": 4}, "bits", "none"),
        ({"method": "bnb-nf4", "bits": 4}, "bits", "double_quantization"),
        ({"method": "gptq", "threshold": 6.0}, "threshold", "group_size"),
        ({"method": "gptq", "bits": 5}, "bits", "2, 3, 4, 8"),
        ({"method": "gptq", "bits": True}, "bits", "2, 3, 4, 8"),
        ({"method": "gptq", "bits": "4"}, "bits", "2, 3, 4, 8"),
        ({"method": "gptq", "group_size": 100}, "group_size", "-1"),
        ({"method": "torchao-int4", "group_size": -1}, "group_size", "32, 64, 128, 256"),
        ({"method": "gptq", "act_order": 1}, "act_order", "true or false"),
        ({"method": "gptq", "calibration": " "}, "calibration", "text file"),
        ({"method": "bnb-int8", "threshold": float("nan")}, "threshold", "0 to 1000"),
        ({"method": "bnb-int8", "threshold": -1}, "threshold", "0 to 1000"),
        ({"method": "bnb-fp4", "compute_dtype": "int8"}, "compute_dtype", "bfloat16"),
    ],
)
def test_bad_options_name_the_field_and_what_is_allowed(options, field, allowed):
    with pytest.raises(ConfigError) as refused:
        Quantization(**options)
    assert refused.value.field == field and allowed in str(refused.value)


def test_the_name_says_what_departs_from_the_usual():
    assert str(Quantization("bnb-nf4")) == "bnb-nf4"
    assert str(Quantization("gptq", bits=3, group_size=-1)) == "gptq 3-bit whole columns"
    assert str(Quantization("gptq", calibration="/home/me/mine.txt")) == "gptq 4-bit g128 calibration mine.txt"
    assert str(Quantization("bnb-int8", threshold=0.0)) == "bnb-int8 threshold 0.0"
    assert describe_model(ModelSpec("m", quantization=Quantization("gptq"))) == "m gptq 4-bit g128"


def test_a_preset_gives_a_method_or_a_table(tmp_path):
    def quantization(line):
        path = tmp_path / "mine.toml"
        path.write_text(f'title = "T"\n[base]\nmodel = "m"\n[[slots]]\nid = "a"\nquantization = {line}\n')
        return load_preset(path).slots[0].model.quantization

    assert quantization('"torchao-int8"') == Quantization("torchao-int8")
    assert quantization('{ method = "gptq", bits = 8, group_size = 32 }') == Quantization("gptq", bits=8, group_size=32)
    for line, parts in (
        ('{ method = "gptq", bitz = 8 }', ["slots[0].quantization", "'bitz'", "group_size"]),
        ('{ method = "gptq", bits = 7 }', ["slots[0].quantization.bits", "2, 3, 4, 8"]),
        ('{ bits = 4 }', ["slots[0].quantization.bits", "none"]),
        ("4", ["slots[0].quantization", "table"]),
    ):
        with pytest.raises(ConfigError) as refused:
            quantization(line)
        assert all(part in str(refused.value) for part in parts), refused.value


def test_every_method_can_be_made_with_its_defaults():
    for method in QuantizationMethod.__args__:
        assert Quantization(method).method == method and hash(Quantization(method))
