#!/usr/bin/env python3
"""Holds recorded answers to the API's description.

usage: check.py OPENAPI.yaml < RECORDS

A record is a line of JSON: method, path (as asked for), status, type (Content-Type), body (JSON or
null) and id (X-Request-ID); or event and data. What the description does not have is a fault, also
a field that is nowhere in a schema. Prints the faults, and the operations that were never tried.
"""

import json
import re
import sys

import jsonschema
import yaml

SOURCE = yaml.safe_load(open(sys.argv[1]))
faults = []


def strict(node):
    """Objects with known fields have no others."""
    if isinstance(node, dict):
        if node.get("type") == "object" and "properties" in node:
            node.setdefault("additionalProperties", False)
        for value in node.values():
            strict(value)
    elif isinstance(node, list):
        for value in node:
            strict(value)


def resolve(node):
    while isinstance(node, dict) and "$ref" in node:
        target = SOURCE
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        node = target
    return node


def references(node):
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def pattern(path):
    return re.compile("^" + re.sub(r"\{\w+\}", "[^/]+", path) + "$")


def holds(schema, value, where):
    whole = {"components": SOURCE["components"], **schema}
    for error in jsonschema.Draft202012Validator(whole).iter_errors(value):
        faults.append(f"{where}: {'/'.join(map(str, error.absolute_path))}: {error.message}")


for reference in set(references(SOURCE)):
    resolve({"$ref": reference})
for name, schema in SOURCE["components"]["schemas"].items():
    jsonschema.Draft202012Validator.check_schema(schema)
strict(SOURCE["components"])
strict(SOURCE["paths"])

# Those without placeholders first: /images/tags is not an image.
paths = sorted(SOURCE["paths"], key=lambda path: path.count("{"))
untried = {(method, path) for path, item in SOURCE["paths"].items() for method in item}
events = {name.removeprefix("event_") for name in SOURCE["components"]["schemas"] if name.startswith("event_")}

for line in sys.stdin:
    record = json.loads(line)
    if "event" in record:
        name = record["event"]
        schema = SOURCE["components"]["schemas"].get(f"event_{name}")
        if schema is None:
            faults.append(f"event {name} is not described")
        else:
            events.discard(name)
            holds(schema, record["data"], f"event {name}")
        continue
    method, path = record["method"].lower(), record["path"].split("?")[0]
    where = f"{record['method']} {record['path']} {record['status']}"
    found = next((known for known in paths if pattern(known).match(path)), None)
    operation = SOURCE["paths"].get(found, {}).get(method)
    if operation is None:
        faults.append(f"{where} is not described")
        continue
    untried.discard((method, found))
    if not record["id"]:
        faults.append(f"{where} has no X-Request-ID")
    answer = operation["responses"].get(str(record["status"]))
    if answer is None:
        faults.append(f"{where} is not described: {record['body']}")
        continue
    content = resolve(answer).get("content", {})
    kind = next((kind for kind in content if kind in ("*/*", record["type"])), None)
    if content and kind is None:
        faults.append(f"{where} is {record['type']}")
    elif kind == "application/json":
        holds(content[kind]["schema"], record["body"], where)

faults += [f"{method.upper()} {path} was never tried" for method, path in sorted(untried)]
faults += [f"event {name} was never seen" for name in sorted(events - set(sys.argv[2:]))]
print("\n".join(faults))
sys.exit(bool(faults))
