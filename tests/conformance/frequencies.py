"""The exact pixels of a JPEG when only the lowest frequencies of its blocks are transformed.

libjpeg-turbo averages pixels instead, which loses sharpness, so it only decodes the coefficients here:
jpegtran puts each component into its own scan, and djpeg reads that as a grey picture with quantiser
steps so small that no sample is clipped. The rest is the definition of the transform."""

import functools
import math
import struct

from common import output

ZIGZAG = sorted(range(64), key=lambda at: (
    at // 8 + at % 8, at // 8 if (at // 8 + at % 8) % 2 else at % 8))


@functools.cache
def waves(count):
    """The cosines by frequency and place, scaled so that the inverse transform is the transpose."""
    scale = [math.sqrt((2 if at else 1) / count) for at in range(count)]
    return [[scale[wave] * math.cos((2 * place + 1) * wave * math.pi / (2 * count))
             for place in range(count)] for wave in range(count)]


def product(one, other):
    columns = list(zip(*other))
    return [[sum(map(float.__mul__, row, column)) for column in columns] for row in one]


def turned(rows):
    return [list(column) for column in zip(*rows)]


class Picture:
    """The coefficients of a file by component: rows of blocks, each of 8 rows."""

    def __init__(self, path, components):
        script = path + '.each'
        with open(script, 'w', encoding='ascii') as file:
            file.write(''.join(f'{part};' for part in range(components)))
        data = output(['jpegtran', '-scans', script, path])
        self.adobe, self.jfif, self.parts, self.blocks = None, False, [], []
        tables, codes, scans, at = {}, b'', [], 2
        while data[at + 1] != 0xd9:
            kind, length = data[at + 1], struct.unpack('>H', data[at + 2:at + 4])[0]
            content, at = data[at + 4:at + 2 + length], at + 2 + length
            if kind == 0xdb:
                tables.update(steps(content))
            elif kind in (0xc0, 0xc1):
                self.size = struct.unpack('>HH', content[1:5])[::-1]
                self.parts = [(part[0], part[1] >> 4, part[1] & 15, part[2])
                              for part in (content[6 + 3 * n:9 + 3 * n] for n in range(content[5]))]
            elif kind == 0xc4:
                codes += segment(0xc4, content)
            elif kind == 0xe0:
                self.jfif = True
            elif kind == 0xee:
                self.adobe = content[11]
            elif kind == 0xda:
                end = at
                while data[end] != 0xff or data[end + 1] == 0:
                    end += 1
                scans.append((codes, content, data[at:end]))
                at = end
        self.most = max(part[1] for part in self.parts), max(part[2] for part in self.parts)
        for part, scan in zip(self.parts, scans):
            self.blocks.append(self.component(part, tables[part[3]], *scan))

    def covers(self, part, scale):
        """Width and height of a component if a block has `scale` samples across and down."""
        return tuple(-(-length * own * samples // (8 * most)) for length, own, most, samples
                     in zip(self.size, part[1:3], self.most, scale))

    def component(self, part, table, codes, scan, data):
        small = [min(step, 9) for step in table]
        across, down = self.covers(part, (1, 1))
        frame = struct.pack('>BHHB', 8, 8 * down, 8 * across, 1) + bytes([part[0], 0x11, 0])
        alone = (b'\xff\xd8' + segment(0xdb, bytes([0, *small])) + segment(0xc0, frame) + codes
                 + segment(0xda, scan) + data + b'\xff\xd9')
        samples = output(['djpeg', '-dct', 'int', '-pnm'], alone)[-64 * across * down:]
        rows = []
        for y in range(down):
            rows.append([])
            for x in range(across):
                places = [(8 * y + row) * 8 * across + 8 * x for row in range(8)]
                block = [[float(value - 128) for value in samples[at:at + 8]] for at in places]
                if max(map(max, block)) == min(map(min, block)):
                    found = [[8 * block[0][0], *[0.0] * 7], *([0.0] * 8 for _ in range(7))]
                else:
                    found = product(product(waves(8), block), turned(waves(8)))
                # Restores the integers of the file, if the rounded samples still allow that.
                for place, few, step in zip(ZIGZAG, small, table):
                    row, column = divmod(place, 8)
                    if few < step:
                        found[row][column] = float(round(found[row][column] / few) * step)
                rows[-1].append(found)
        return rows

    def plane(self, number, scale):
        """Samples of a component, `scale` of each block across and down."""
        (width, height), lines = scale, []
        gain = math.sqrt(width * height) / 8
        for row in self.blocks[number]:
            found = [product(product(turned(waves(height)), [line[:width] for line in block[:height]]),
                             waves(width)) for block in row]
            for y in range(height):
                lines.append([min(max(value * gain + 128, 0), 255)
                              for block in found for value in block[y]])
        across, down = self.covers(self.parts[number], scale)
        return [line[:across] for line in lines[:down]]

    def pixels(self, side):
        """RGBA pixels and their size. Of a subsampled component, more of each block is transformed."""
        planes, size = [], tuple(-(-length * side // 8) for length in self.size)
        for number, part in enumerate(self.parts):
            ratio = self.most[0] // part[1], self.most[1] // part[2]
            scale = tuple(min(side * times, 8) for times in ratio)
            times = [side * times // own for times, own in zip(ratio, scale)]
            plane = self.plane(number, scale)
            blended = max(times) <= 2 and not (times[0] == 2 and len(plane[0]) <= 2)
            plane = [stretched(line, times[0], blended) for line in plane]
            plane = turned(stretched(column, times[1], blended) for column in zip(*plane))
            planes.append([value for line in plane[:size[1]] for value in line[:size[0]]])
        pixels = bytearray(b'\xff' * (4 * size[0] * size[1]))
        for at, samples in enumerate(zip(*planes)):
            pixels[4 * at:4 * at + 3] = bytes(min(max(round(c), 0), 255) for c in self.color(samples))
        return bytes(pixels), size

    def color(self, samples):
        """RGB from the samples of a pixel."""
        if len(samples) == 1:
            return samples * 3
        if len(samples) == 4:
            colors = samples[:3] if self.adobe == 0 else [255 - v for v in ycc(*samples[:3])]
            return [value * samples[3] / 255 for value in colors]
        return samples if self.adobe == 0 and not self.jfif else ycc(*samples)


def ycc(y, cb, cr):
    cb, cr = cb - 128, cr - 128
    colors = y + 1.402 * cr, y - 0.344136 * cb - 0.714136 * cr, y + 1.772 * cb
    return [min(max(value, 0), 255) for value in colors]


def stretched(values, times, blended):
    """Upsamples a row: doubled by blending neighbours 3 to 1, or each value repeated."""
    if times != 2 or not blended:
        return [value for value in values for _ in range(times)]
    values = [values[0], *values, values[-1]]
    return [(3 * values[at] + values[near]) / 4
            for at in range(1, len(values) - 1) for near in (at - 1, at + 1)]


def steps(content):
    """The number of each table and its quantiser steps in coded order."""
    while content:
        wide, number = content[0] >> 4, content[0] & 15
        length = 128 if wide else 64
        yield number, struct.unpack('>64H' if wide else '>64B', content[1:1 + length])
        content = content[1 + length:]


def segment(kind, content):
    return struct.pack('>BBH', 0xff, kind, len(content) + 2) + content
