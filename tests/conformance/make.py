#!/usr/bin/env python3
"""Makes files in all varieties of the formats, and their pixels with other programs: make.py DIRECTORY
whole|part FORMAT..."""

import importlib
import sys

from common import Cases

if __name__ == '__main__':
    directory, extent, *formats = sys.argv[1:]
    CASES = Cases(directory, extent == 'whole')
    for name in formats:
        importlib.import_module(name).make(CASES)
    CASES.finish()
