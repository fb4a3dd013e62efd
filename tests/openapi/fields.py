#!/usr/bin/env python3
"""Prints the fields that the API's description has of records and answers.

usage: fields.py OPENAPI.yaml NAME...

A name is a schema's, or an operation's ("POST /images"), whose success is meant. Of each a line with
its fields, sorted.
"""

import sys

import yaml

SOURCE = yaml.safe_load(open(sys.argv[1]))


def resolve(node):
    while "$ref" in node:
        target = SOURCE
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        node = target
    return node


def schema(name):
    if " " not in name:
        return SOURCE["components"]["schemas"][name]
    method, path = name.split(" ")
    answers = SOURCE["paths"][path][method.lower()]["responses"]
    success = next(answer for status, answer in answers.items() if str(status).startswith("2"))
    return resolve(success)["content"]["application/json"]["schema"]


for name in sys.argv[2:]:
    print(*sorted(resolve(schema(name))["properties"]))
