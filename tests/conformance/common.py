"""Shared by the scripts that make files: a scene, the list of cases, and running programs in parallel."""

import array
import concurrent.futures
import json
import math
import os
import random
import subprocess
import sys

from PIL import Image


def scene(width, height, kind='soft'):
    """An RGB picture: smooth shapes with some edges, or noise."""
    numbers = random.Random(f'{width} {height} {kind}')
    if kind == 'noise':
        return Image.frombytes('RGB', (width, height), numbers.randbytes(3 * width * height))
    picture = Image.new('RGB', (width, height))

    def pixel(x, y):
        u, v = x / 48, y / 48
        if (u - 0.5) ** 2 + (v - 0.4) ** 2 < 0.06:
            return 230, 190, 40
        red = 128 + 110 * math.sin(3 * u + v)
        green = 128 + 90 * math.sin(2 * v - u + 1)
        blue = 90 + 60 * math.cos(4 * u - 2 * v) + 25 * math.sin(9 * u)
        return int(red), int(green), int(blue)

    picture.putdata([pixel(x, y) for y in range(height) for x in range(width)])
    return picture


class Cases:
    """Files in a directory, and their pixels as other programs decode them."""

    def __init__(self, place, whole):
        self.place, self.whole, self.list, self.jobs = place, whole, [], []

    def path(self, name):
        return os.path.join(self.place, name)

    def add(self, name, size, peer, *, pixels=None, command=None, side=8, frames=1, least=None,
            why=None):
        """Adds a case. The peer's RGBA pixels of `size` are given as bytes or printed by `command` (PNM or
        RGBA); neither if the peer refuses the file. `least`: likeness in dB, or None for equality.
        `why`: a known difference."""
        reference = f'{name}.{side}.{frames}.rgba' if pixels or command else None
        self.list.append(dict(file=name, peer=peer, reference=reference, size=size, side=side,
                              frames=frames, least=least, why=why))
        if pixels:
            with open(self.path(reference), 'wb') as file:
                file.write(pixels)
        elif command:
            self.jobs.append((command, self.path(reference), size, frames))

    def write(self, name, content):
        with open(self.path(name), 'wb') as file:
            file.write(content)

    def finish(self):
        side_by_side(lambda job: reference(*job), self.jobs)
        with open(self.path('cases.json'), 'w', encoding='utf-8') as file:
            json.dump(self.list, file, indent=0)


def side_by_side(work, jobs):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(work, jobs))


def output(command, given=None):
    done = subprocess.run(command, input=given, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f'{command}: {done.stderr.decode()}')
    return done.stdout


def reference(command, path, size, frames):
    """Writes the pixels that a command prints as PNM or RGBA to a file."""
    pixels = output(command)
    if pixels[:2] in (b'P5', b'P6'):
        kind, width, height, _, samples = split(pixels)
        if (width, height) != tuple(size):
            raise RuntimeError(f'{command}: {width} x {height}, not {size}')
        pixels = opaque(samples, 1 if kind == b'P5' else 3)
    if len(pixels) != 4 * size[0] * size[1] * frames:
        raise RuntimeError(f'{command}: {len(pixels)} bytes for {size}')
    with open(path, 'wb') as file:
        file.write(pixels)


def split(pnm):
    """Kind, width, height, maximum and samples of a PNM file."""
    kind, sizes, most, samples = pnm.split(b'\n', 3)
    width, height = map(int, sizes.split())
    return kind, width, height, int(most), samples


def opaque(samples, channels):
    pixels = bytearray(b'\xff' * (len(samples) // channels * 4))
    for channel in range(3):
        pixels[channel::4] = samples[channel % channels::channels]
    return bytes(pixels)


def shown(cases, names, *, least=None, why=None, options=()):
    """Adds cases with the pixels as ImageMagick decodes them, many files at a time. It would truncate
    sixteen bits to eight, so it writes sixteen, which are then rounded."""
    for start in range(0, len(names), 100):
        command = ['convert']
        for name in names[start:start + 100]:
            command += ['(', cases.path(name) + '[0]', *options, '-colorspace', 'sRGB', '-depth', '16',
                        '-endian', 'LSB',
                        '-write', f'rgba:{cases.path(name)}.8.rgba', '-format', f'{name} %w %h\n',
                        '-write', 'info:', '+delete', ')']
        done = subprocess.run([*command, 'null:'], capture_output=True, check=False)
        sizes = {}
        for line in done.stdout.decode().splitlines():
            name, width, height = line.rsplit(' ', 2)
            sizes[name] = int(width), int(height)
        for name in names[start:start + 100]:
            taken = f'{name}.8.rgba' if name in sizes else None
            if taken:
                nearest(cases.path(taken))
            cases.list.append(dict(
                file=name, peer='ImageMagick', reference=taken, size=sizes.get(name, (0, 0)), side=8,
                frames=1, least=least, why=why))


NEAREST = bytes((value * 255 + 32767) // 65535 for value in range(65536))


def nearest(path):
    """Rounds the samples of a file from sixteen bits to eight."""
    with open(path, 'r+b') as file:
        samples = array.array('H', file.read())
        if sys.byteorder == 'big':
            samples.byteswap()
        file.seek(0)
        file.write(bytes(map(NEAREST.__getitem__, samples)))
        file.truncate()
