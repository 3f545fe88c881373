import inspect

import numpydoc.validate

import cobasis
import cobasis.estimators

EXCLUDED = {
    "ES01": "a summary that says it all needs no second paragraph",
    "SA01": "the reference is grouped, and explanation pages link what belongs together",
    "EX01": "one running example per page of the documentation, not one per method",
    "PR08": "some descriptions begin with the paper's lower-case letter: l, a, c",
}
FIELDS_ARE_ATTRIBUTES = "PR01"  # frozen dataclasses and pydantic models document them as such
TOLD_ELSEWHERE = ("Attributes\n", "as of `Collaborative")
HEADINGS = ("**Who sees what.**", "**Cost.**")

SENTENCES = {
    *("target", "fits"),  # the Aligner protocol says what goes in and out
    # Only Party uses these; the class says who may hold what comes out.
    *("commitment", "anchor_tag", "anchor", "check_opens", "stream", "order"),
    # These are used inside; the name and the type say all.
    *("project", "image", "digest", "anchor_recipe", "make_aligner"),
    *("read", "code", "record", "statement", "write", "names", "held_by", "mapped"),
    *("model_validate_json", "model_copy"),  # pydantic's own
    "effects",  # as of coefficients
    "table",  # as of summary, which is its text
    # Of survival, as of the other estimators.
    *("predict", "predict_survival", "score", "coefficients"),
}
"""Methods whose docstring is one sentence."""

PUBLIC = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (cobasis, cobasis.estimators)
    for name in module.__all__
}


def is_error(thing):
    return inspect.isclass(thing) and issubclass(thing, Exception)


def methods():
    """Every public method that a public class has from us; properties are sentences."""
    for thing in PUBLIC.values():
        for base in thing.__mro__ if inspect.isclass(thing) and not is_error(thing) else ():
            for name, method in vars(base).items():
                inner = getattr(method, "__func__", method)
                ours = inspect.isfunction(inner) and inner.__module__.startswith("cobasis")
                if ours and base.__module__.startswith("cobasis") and not name.startswith("_"):
                    yield f"{base.__module__}.{base.__qualname__}.{inner.__name__}", inner


def test_every_public_class_function_and_method_is_documented_and_errors_are_sentences():
    for thing in filter(is_error, PUBLIC.values()):
        assert thing.__doc__.strip().endswith("."), thing
    found = {path: each for path, each in PUBLIC.items() if not is_error(each)}
    excused = set()
    for path, method in methods():
        name = path.rpartition(".")[2]
        if name in SENTENCES and "\n" not in inspect.getdoc(method):
            excused.add(name)
        else:
            found[path] = method
    assert excused == SENTENCES
    needed = set()
    for path, thing in found.items():
        codes = {code for code, _ in numpydoc.validate.validate(path)["errors"]}
        needed |= codes & set(EXCLUDED)
        if inspect.isclass(thing) and any(each in thing.__doc__ for each in TOLD_ELSEWHERE):
            codes -= {FIELDS_ARE_ATTRIBUTES}
        assert codes <= set(EXCLUDED), path
        told = [heading for heading in HEADINGS if heading in thing.__doc__]
        assert told == [*HEADINGS] or (path not in PUBLIC and told == []), path  # its class's
    assert needed == set(EXCLUDED)
