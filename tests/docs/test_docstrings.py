"""Docstrings of everything public are valid numpydoc, with the two fixed headings."""

import inspect

import numpydoc.validate
import pytest

import cobasis
import cobasis.estimators

EXCLUDED = {
    "ES01": "a summary that says it all needs no second paragraph",
    "SA01": "the reference is grouped, and explanation pages link what belongs together",
    "EX01": "one running example per page of the documentation, not one per method",
    "PR08": "some descriptions begin with the paper's lower-case letter: l, a, c",
}
FIELDS_ARE_ATTRIBUTES = "PR01"  # frozen dataclasses and pydantic models document them as such
HEADINGS = ("**Who sees what.**", "**Cost.**")

SENTENCES = {
    "target": "the Aligner protocol says what goes in and out",
    "fits": "same",
    "commitment": "used by Party; the class says who may hold what comes out",
    "anchor_tag": "same",
    "anchor": "same",
    "check_opens": "same",
    "stream": "same",
    "project": "used by Party; the name and the type say all",
    "image": "same",
    "digest": "used by Party and Analyst; the name and the type say all",
    "anchor_recipe": "same",
    "make_aligner": "same",
    "read_image": "used by Analyst; the name and the type say all",
    "row_block": "same",
    "label_block": "same",
    "code": "used by features' encoding; the class says what codes are",
    "record": "used by the bundle's manifest; the name and the type say all",
    "statement": "same",
    "write": "used by party_side; `prepare` says what leaves",
    "model_validate_json": "pydantic's own name and parameters",
    "model_copy": "same",
}
"""Methods whose docstring is one sentence, each with the reason."""


def public():
    """Every public name, with what it is; exceptions are sentences and stand elsewhere."""
    for module in (cobasis, cobasis.estimators):
        for name in module.__all__:
            thing = getattr(module, name)
            if not (inspect.isclass(thing) and issubclass(thing, Exception)):
                yield f"{module.__name__}.{name}", thing


def methods():
    """Every public method that a public class has from us; properties are sentences."""
    found = {}
    for _, thing in public():
        for base in thing.__mro__ if inspect.isclass(thing) else ():
            if base.__module__.startswith("cobasis"):
                for name, method in vars(base).items():
                    inner = getattr(method, "__func__", method)
                    ours = inspect.isfunction(inner) and inner.__module__.startswith("cobasis")
                    if ours and not name.startswith("_"):
                        path = f"{base.__module__}.{base.__qualname__}.{inner.__name__}"
                        found[path] = inner
    return found


def findings(path):
    """What numpydoc has to say, without what is excluded."""
    told = numpydoc.validate.validate(path)["errors"]
    return [(code, text) for code, text in told if code not in EXCLUDED]


def is_excused(path, method):
    """Whether a method's one sentence is enough."""
    return path.split(".")[-1] in SENTENCES and "\n" not in inspect.getdoc(method)


LONG = {path: each for path, each in methods().items() if not is_excused(path, each)}


@pytest.mark.parametrize("path", dict(public()))
def test_a_public_class_or_function_is_documented(path):
    thing = dict(public())[path]
    told = findings(path)
    if inspect.isclass(thing) and "Attributes\n" in thing.__doc__:
        told = [each for each in told if each[0] != FIELDS_ARE_ATTRIBUTES]
    assert told == []
    assert [heading for heading in HEADINGS if heading not in thing.__doc__] == []


@pytest.mark.parametrize("path", LONG)
def test_a_public_method_is_documented(path):
    assert findings(path) == []
    told = [heading for heading in HEADINGS if heading in LONG[path].__doc__]
    assert told in ([], [*HEADINGS])  # its own, or its class's


def test_every_excuse_is_still_needed():
    excused = {path.split(".")[-1] for path in methods() if path not in LONG}
    assert excused == set(SENTENCES)
    assert len(LONG) > 10


@pytest.mark.parametrize("code", EXCLUDED)
def test_every_exclusion_is_still_needed(code):
    told = {
        found
        for path in (*dict(public()), *LONG)
        for found, _ in numpydoc.validate.validate(path)["errors"]
    }
    assert code in told


def test_public_exceptions_are_one_sentence():
    for name in cobasis.__all__:
        thing = getattr(cobasis, name)
        if inspect.isclass(thing) and issubclass(thing, Exception):
            assert thing.__doc__.strip().endswith("."), name
