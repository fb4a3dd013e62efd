#!/usr/bin/env python3
"""Prints the rows of the section RESPONSES of murald-api(7), from the API's description.

usage: responses.py OPENAPI.yaml [EXAMPLES.json]

A row is an operation and its successful response: a record, a list of records, or fields. Fails if the
description repeats a summary instead of the response, or if an example there is not the one of the file, an
object with the examples by name.
"""

import json
import sys

import yaml

SOURCE = yaml.safe_load(open(sys.argv[1]))


def named(schema):
    """A schema in roff: the name of the record, or the fields."""
    if "$ref" in schema:
        return schema["$ref"].split("/")[-1]
    if schema.get("type") == "array":
        return f"list of {named(schema['items'])}"
    return ".Cm " + " , ".join(schema["properties"]) if "properties" in schema else ""


def response(method, path, operation):
    found = {}
    for status, answer in operation["responses"].items():
        if not str(status).startswith("2"):
            continue
        for kind, content in answer["content"].items():
            text = named(content["schema"])
            if kind != "application/json":
                text = {"*/*": "the file"}.get(kind, kind.split(";")[0])
            if text not in found.values():
                found[status] = text
        if answer["description"] == operation["summary"]:
            sys.exit(f"{method} {path} {status}: the description is the summary")
    return found


for path, item in SOURCE["paths"].items():
    for method, operation in item.items():
        print(f".It Cm {method.upper()} {path}")
        found = response(method, path, operation)
        for status, text in found.items():
            if set(found) != {"200"}:
                print(f"{status}:")
            print(text)

if len(sys.argv) > 2:
    for name, example in json.load(open(sys.argv[2])).items():
        for described in SOURCE["components"]["schemas"][name]["examples"]:
            if described != example:
                sys.exit(f"another example of {name}: {json.dumps(described)}")
