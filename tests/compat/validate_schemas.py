"""Validates the samples of the protocol against the schemas, with the Python package jsonschema.

  python3 validate_schemas.py SCHEMAS DATA

SCHEMAS is docs/schema, DATA the directory with the samples of the protocol crate. Prints the number of samples. Exits
with 1 and a message if a schema accepts an invalid sample, or rejects a valid one.
"""

import json
import pathlib
import sys

import jsonschema

schemas, data = map(pathlib.Path, sys.argv[1:3])
validators = {}
for path in schemas.glob("*.schema.json"):
    schema = json.loads(path.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validators[path.name.split(".")[0]] = jsonschema.Draft202012Validator(schema)


def samples():
    """Yields for each sample the name of its schema, the sample, and whether it is valid."""
    for era in ["seed-era", "later-era"]:
        for path in sorted((data / era).rglob("*.json")):
            kind = "task" if path.parent.name == "tasks" else path.name.removesuffix(".json").split("-")[0]
            whole = json.loads(path.read_text())
            yield kind, whole, True
            texts = [message["text"] for message in whole if kind == "inbox"] if isinstance(whole, list) else []
            yield from (("payload", json.loads(text), True) for text in texts if text.startswith("{"))
    groups = json.loads((data / "schemas.json").read_text())
    for key, entries in groups.items():
        yield from ((entry["schema"], entry["sample"], key == "taken") for entry in entries)
    for name in ["duplicate-keys", "lone-surrogate", "numbers", "spoof"]:
        yield "inbox", json.loads((data / f"hostile-inboxes/{name}.json").read_text()), True
    for name in ["object-not-array", "wrong-types"]:
        yield "inbox", json.loads((data / f"hostile-inboxes/{name}.json").read_text()), False


count = 0
for kind, sample, valid in samples():
    count += 1
    if validators[kind].is_valid(sample) != valid:
        sys.exit(f"the schema {kind} should {'accept' if valid else 'reject'}: {json.dumps(sample)}")
print(count)
