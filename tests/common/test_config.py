"""Configuration files: every mistake at once, with its place."""

from typing import Annotated, Literal

import pytest
from pydantic import Field, PositiveInt

from common.config import Config, apply_override, load_config
from common.errors import ConfigError, InputError


class Small(Config):
    kind: Literal["small"] = "small"
    width: PositiveInt = 4


class Large(Config):
    kind: Literal["large"] = "large"
    width: PositiveInt = 400
    depth: PositiveInt = 3


class Part(Config):
    steps: PositiveInt = 10
    rate: Annotated[float, Field(gt=0)] = 0.1


class Job(Config):
    name: str
    part: Part = Part()
    model: Annotated[Small | Large, Field(discriminator="kind")] = Small()
    models: tuple[Annotated[Small | Large, Field(discriminator="kind")], ...] = ()


def write(folder, text):
    path = folder / "job.yaml"
    path.write_text(text)
    return path


def test_values_defaults_and_overrides(tmp_path):
    path = write(tmp_path, "name: a\nmodel: {kind: large, depth: 2}\n")
    job = load_config(path, Job, ("part.steps=25", "model.width=7"))
    assert job == Job(name="a", part=Part(steps=25), model=Large(width=7, depth=2))


def test_three_mistakes_are_three_lines_with_path_and_line(tmp_path):
    path = write(
        tmp_path, "name: a\npart:\n  step: 3\n  rate: -1\nmodels:\n  - {kind: small}\n  - {kind: large, depth: x}\n"
    )
    with pytest.raises(ConfigError) as caught:
        load_config(path, Job)
    message = str(caught.value)
    assert message.startswith(f"{path}: 3 mistakes\n")
    assert "part.step (line 3): unknown key, did you mean 'steps'? (known here: steps, rate)" in message
    assert "part.rate (line 4): input should be greater than 0, got -1" in message
    assert "models.1.depth (line 7): input should be a valid integer" in message
    assert "got 'x'" in message


def test_unknown_key_of_a_chosen_model_names_the_keys_of_that_model(tmp_path):
    path = write(tmp_path, "name: a\nmodel: {kind: small, colour: 2}\n")
    with pytest.raises(ConfigError, match=r"model.colour \(line 2\): unknown key \(known here: kind, width\)"):
        load_config(path, Job)


def test_unknown_kind_and_missing_key(tmp_path):
    path = write(tmp_path, "model: {kind: huge}\n")
    with pytest.raises(ConfigError) as caught:
        load_config(path, Job)
    assert "name: this key is required" in str(caught.value)
    assert "'small', 'large'" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the file is empty"),
        ("- 1\n", "the top level must be keys and values, found list"),
        ("name: [1\n", "not valid YAML"),
        ("name: a\nname: b\n", "key 'name' stands twice, again in line 2"),
        ("name: !!python/object/apply:os.system ['true']\n", "not valid YAML"),
    ],
)
def test_files_that_are_no_configuration(tmp_path, text, says):
    with pytest.raises(ConfigError, match=says):
        load_config(write(tmp_path, text), Job)


def test_missing_file_and_bad_override(tmp_path):
    with pytest.raises(InputError, match="there is no such file"):
        load_config(tmp_path / "none.yaml", Job)
    path = write(tmp_path, "name: a\n")
    with pytest.raises(ConfigError, match="written key=value"):
        load_config(path, Job, ("part.steps",))
    with pytest.raises(ConfigError, match="'name' is not a group"):
        load_config(path, Job, ("name.first=b",))


@pytest.mark.parametrize("text", ["%d/%m/%Y", ",", ";", "on", "no", "Yes"])
def test_an_override_may_be_a_text_that_yaml_keeps_for_itself(text):
    tree = {}
    apply_override(tree, f"data.target={text}")
    assert tree == {"data": {"target": text}}
