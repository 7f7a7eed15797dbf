"""A validator that is not ours holds the samples against the schemas.

  python3 validate_schemas.py SCHEMAS DATA

SCHEMAS is docs/schema, DATA the samples of the protocol crate. Ends with 1, and says why, where they disagree; prints
how many samples it looked at.
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
    for era in ["seed-era", "later-era"]:
        for path in sorted((data / era).rglob("*.json")):
            kind = "task" if path.parent.name == "tasks" else path.name.removesuffix(".json").split("-")[0]
            whole = json.loads(path.read_text())
            yield kind, whole, True
            texts = [message["text"] for message in whole if kind == "inbox"] if isinstance(whole, list) else []
            yield from (("payload", json.loads(text), True) for text in texts if text.startswith("{"))
    planted = json.loads((data / "schemas.json").read_text())
    for key in planted:
        yield from ((one["schema"], one["sample"], key == "taken") for one in planted[key])
    for name in ["duplicate-keys", "lone-surrogate", "numbers", "spoof"]:
        yield "inbox", json.loads((data / f"hostile-inboxes/{name}.json").read_text()), True
    for name in ["object-not-array", "wrong-types"]:
        yield "inbox", json.loads((data / f"hostile-inboxes/{name}.json").read_text()), False


seen = 0
for kind, sample, taken in samples():
    seen += 1
    if validators[kind].is_valid(sample) != taken:
        sys.exit(f"{kind} should be {'taken' if taken else 'refused'}: {json.dumps(sample)}")
print(seen)
