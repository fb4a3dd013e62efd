"""Writes PNG files with each feature of PngSuite; compares with ImageMagick (libpng). Broken files must be
refused."""

import itertools
import random
import struct
import zlib

from common import opaque, scene, shown

CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
          (0, 1, 1, 2)]
SIGNATURE = b'\x89PNG\r\n\x1a\n'


def chunk(kind, content, check=None):
    found = zlib.crc32(kind + content) if check is None else check
    return struct.pack('>I', len(content)) + kind + content + struct.pack('>I', found)


def samples(color, depth, width, height):
    """Rows of pixels, each a list of samples."""
    numbers = random.Random(f'{color} {depth} {width} {height}')
    picture, most = scene(width, height), (1 << depth) - 1
    rows = []
    for y in range(height):
        rows.append([])
        for x in range(width):
            red, green, blue = picture.getpixel((x, y))
            alpha = 255 * x // width
            values = {0: [red], 2: [red, green, blue], 3: [green], 4: [red, alpha],
                      6: [red, green, blue, alpha]}[color]
            low = numbers.randrange(256) if depth == 16 else 0
            rows[-1].append([(value << 8 | low) * most // 65535 for value in values])
    return rows


def packed(row, depth):
    values = [value for pixel in row for value in pixel]
    if depth == 16:
        return struct.pack(f'>{len(values)}H', *values)
    bits = ''.join(f'{value:0{depth}b}' for value in values)
    bits += '0' * (-len(bits) % 8)
    return bytes(int(bits[at:at + 8], 2) for at in range(0, len(bits), 8))


def filtered(rows, step, choose):
    """Filtered rows of bytes, each after the number of its filter."""
    before, out = None, bytearray()
    for y, row in enumerate(rows):
        before = before or bytes(len(row))
        kind = choose(y)
        out.append(kind)
        for at, value in enumerate(row):
            a = row[at - step] if at >= step else 0
            b, c = before[at], before[at - step] if at >= step else 0
            near = [abs(b - c), abs(a - c), abs(a + b - 2 * c)]
            paeth = (a, b, c)[near.index(min(near))]
            out.append(value - (0, a, b, (a + b) // 2, paeth)[kind] & 255)
        before = row
    return bytes(out)


def data(rows, color, depth, interlaced, choose):
    step = max(1, CHANNELS[color] * depth // 8)
    parts = [rows] if not interlaced else [
        [row[left::across] for row in rows[top::down]] for left, top, across, down in PASSES]
    # A pass without pixels has no rows.
    return b''.join(filtered([packed(row, depth) for row in part], step, choose)
                    for part in parts if part and part[0])


def png(color, depth, width, height, *, interlaced=False, choose=lambda y: y % 5, before=b'',
        between=b'', level=6, pieces=1 << 20, empty=False):
    """A PNG file with chunks `before` the palette and `between` it and the pixels, in `pieces` of bytes."""
    head = struct.pack('>IIBBBBB', width, height, depth, color, 0, 0, interlaced)
    out = SIGNATURE + chunk(b'IHDR', head) + before
    if color == 3:
        out += chunk(b'PLTE', palette(depth))
    coded = zlib.compress(data(samples(color, depth, width, height), color, depth, interlaced, choose),
                          level)
    parts = [coded[at:at + pieces] for at in range(0, len(coded), pieces)]
    if empty:
        parts = [b'', *itertools.chain.from_iterable((part, b'') for part in parts)]
    return out + between + b''.join(chunk(b'IDAT', part) for part in parts) + chunk(b'IEND', b'')


def palette(depth):
    return bytes(value for at in range(1 << depth)
                 for value in (at * 255 >> depth, 255 - (at * 200 >> depth), at * 91 & 255))


def make(cases):
    files = dict(wanted(cases.whole))
    for name, content in files.items():
        cases.write(name, content)
    shown(cases, list(files))
    name = 'gamma-linear.png'
    cases.write(name, png(2, 8, 32, 32, before=chunk(b'gAMA', struct.pack('>I', 100000))))
    # Like gdk-pixbuf, imlib2 and ffmpeg, murald ignores gAMA, as most files that have it mean sRGB.
    # Profiles are not ignored.
    shown(cases, [name], why='gamma')
    cases.write('no-end.png', png(2, 8, 32, 32)[:-12])
    values = bytes(itertools.chain.from_iterable(sum(samples(2, 8, 32, 32), [])))
    cases.add('no-end.png', (32, 32), 'the specification', pixels=opaque(values, 3))
    moving(cases)
    for name, content in broken():
        cases.write(name, content)
        cases.add(name, (1, 1), 'the specification')


def wanted(whole):
    kinds = [(color, depth) for color, depths in DEPTHS.items() for depth in depths]
    for (color, depth), interlaced in itertools.product(kinds, [False, True]):
        name = f'color{color}-{depth:02}' + '-interlaced' * interlaced
        yield name + '.png', png(color, depth, 32, 32, interlaced=interlaced)
        sizes = range(1, 10) if whole else [1, 3, 5]
        for width, height in itertools.product(sizes, sizes):
            if whole or width == height or depth == 1:
                content = png(color, depth, width, height, interlaced=interlaced)
                yield f'{name}-{width}x{height}.png', content
        for kind in range(5) if whole else ():
            content = png(color, depth, 33, 17, interlaced=interlaced, choose=lambda y, k=kind: k)
            yield f'{name}-filter{kind}.png', content
    for (color, depth), transparent in itertools.product(kinds, range(3)):
        key = samples(color, depth, 32, 32)[4 + transparent][20]
        if color in (0, 2):
            content = struct.pack(f'>{len(key)}H', *key)
        elif color == 3:
            # Alpha for one colour, for two, or for the whole palette.
            count = (1, 2, 1 << depth)[transparent]
            content = bytes(at * 255 // count for at in range(count))
        else:
            continue
        between = chunk(b'tRNS', content)
        for interlaced in (False, True):
            name = f'transparent{transparent}-{color}-{depth:02}' + '-interlaced' * interlaced
            yield name + '.png', png(color, depth, 32, 32, interlaced=interlaced, between=between)
    for level in range(10):
        yield f'level{level}.png', png(2, 8, 32, 32, level=level)
    for pieces in (1, 2, 5, 100):
        yield f'pieces{pieces}.png', png(2, 8, 32, 32, pieces=pieces)
        yield f'pieces{pieces}-empty.png', png(2, 8, 32, 32, pieces=pieces, empty=True)
    text = chunk(b'tEXt', b'Title\0A picture') + chunk(b'zTXt', b'Note\0\0' + zlib.compress(b'x' * 99))
    text += chunk(b'iTXt', b'Author\0\0\0en\0\0somebody') + chunk(b'tIME', b'\7\xea\1\1\0\0\0')
    for name, color, before, between in [
        ('text', 2, text, text), ('background', 2, b'', chunk(b'bKGD', b'\0\xff\0\0\0\0')),
        ('background-grey', 4, b'', chunk(b'bKGD', b'\0\x80')),
        ('background-index', 3, b'', chunk(b'bKGD', b'\1')),
        ('size-of-pixels', 2, chunk(b'pHYs', struct.pack('>IIB', 4000, 1000, 1)), b''),
        ('bits', 6, chunk(b'sBIT', b'\5\6\5\3'), b''),
        ('histogram', 3, b'', chunk(b'hIST', struct.pack('>256H', *range(256)))),
        ('srgb', 2, chunk(b'sRGB', b'\0') + chunk(b'gAMA', struct.pack('>I', 45455)), b''),
        ('gamma-usual', 2, chunk(b'gAMA', struct.pack('>I', 45455)), b''),
        ('palette-suggested', 2, b'', chunk(b'PLTE', palette(4))),
        ('unknown', 2, chunk(b'prVt', b'anything'), chunk(b'abCd', b'')),
        ('exif', 2, b'', chunk(b'eXIf', b'II*\0\x08\0\0\0\0\0\0\0\0\0')),
    ]:
        yield name + '.png', png(color, 8, 32, 32, before=before, between=between)


def moving(cases):
    """APNG, compared with ffmpeg's frames, which equal apngdis's. Pillow 9 blends with the colours of
    transparent pixels, and makes pixels over a transparent place opaque."""
    files = {}
    for dispose, blend, hidden in itertools.product(range(3), range(2), [False, True]):
        name = f'moving-{dispose}-{blend}' + '-hidden' * hidden
        files[name] = apng(6, 8, [dispose] * 3, [blend] * 3, hidden=hidden)
    # All orders of disposal: a restored frame may have been cleared before.
    for at, disposals in enumerate(itertools.permutations(range(3))):
        files[f'moving-mixed{at}'] = apng(6, 8, disposals + disposals, [1, 1, 0, 1, 0, 1])
    kinds = [(color, depth) for color, depths in DEPTHS.items() for depth in depths]
    for (color, depth), interlaced in itertools.product(kinds, [False, True]):
        name = f'moving-color{color}-{depth:02}' + '-interlaced' * interlaced
        if depth < 8:
            # ffmpeg 5 decodes small frames wrongly if a byte has more than one pixel.
            content = apng(color, depth, [0, 1, 2], [1] * 3, interlaced=interlaced)
            cases.write(name + '.png', content)
            cases.add(name + '.png', (20, 14), 'the specification', frames=3,
                      pixels=opaque_frames(color, depth))
            continue
        # ffmpeg does not blend sixteen bits, and clears pictures without alpha to black.
        blends = [int(depth < 16 or color in (0, 2))] * 3
        disposals = [0, int(color not in (0, 2)), 2]
        files[name] = apng(color, depth, disposals, blends, interlaced=interlaced)
    for name, content in files.items():
        name += '.png'
        cases.write(name, content)
        command = ['ffmpeg', '-v', 'error', '-i', cases.path(name), '-fps_mode', 'passthrough',
                   '-pix_fmt', 'rgba', '-f', 'rawvideo', '-']
        cases.add(name, (20, 14), 'ffmpeg', command=command, frames=6 if 'mixed' in name else 3,
                  least=45)


def opaque_frames(color, depth):
    """The expected pixels of three frames, of which the second is cleared."""
    seen, canvas, colors = [], [bytes(4)] * (20 * 14), palette(depth)
    for at in range(3):
        width, height, left, top = place(at)
        if at == 2:
            canvas = [bytes(4) if covered else pixel for pixel, covered in zip(canvas, cleared)]
        cleared = [False] * len(canvas)
        for y, row in enumerate(samples(color, depth, width, height)):
            for x, (value,) in enumerate(row):
                spot = (top + y) * 20 + left + x
                cleared[spot] = True
                light = bytes([value * 255 // ((1 << depth) - 1)] * 3)
                canvas[spot] = (colors[3 * value:3 * value + 3] if color == 3 else light) + b'\xff'
        seen += canvas
    return b''.join(seen)


def place(at):
    """Width, height, left and top of a frame; the first covers the canvas."""
    return (20, 14, 0, 0) if at == 0 else (9 + at % 3, 7, 3 * at % 8, 2 * at % 7)


def apng(color, depth, disposals, blends, *, hidden=False, interlaced=False):
    """An APNG file. With `hidden`, its default picture is not one of the frames."""
    parts, number = [], 0

    def coded(width, height):
        return zlib.compress(data(samples(color, depth, width, height), color, depth, interlaced,
                                  lambda y: y % 5))

    if hidden:
        parts.append(chunk(b'IDAT', coded(20, 14)))
    for at, (dispose, blend) in enumerate(zip(disposals, blends)):
        width, height, left, top = place(at)
        parts.append(chunk(b'fcTL', struct.pack(
            '>IIIIIHHBB', number, width, height, left, top, 1, 10, dispose, blend)))
        number += 1
        if at == 0 and not hidden:
            parts.append(chunk(b'IDAT', coded(width, height)))
        else:
            parts.append(chunk(b'fdAT', struct.pack('>I', number) + coded(width, height)))
            number += 1
    head = struct.pack('>IIBBBBB', 20, 14, depth, color, 0, 0, interlaced)
    return (SIGNATURE + chunk(b'IHDR', head) + chunk(b'acTL', struct.pack('>II', len(disposals), 0))
            + (chunk(b'PLTE', palette(depth)) if color == 3 else b'') + b''.join(parts)
            + chunk(b'IEND', b''))


def broken():
    """Broken files, such as those of PngSuite whose names begin with x."""
    whole = png(2, 8, 32, 32)
    head = struct.pack('>IIBBBBB', 32, 32, 8, 2, 0, 0, 0)
    rest = whole[len(SIGNATURE) + 25:]
    for at, name in enumerate(['first', 'letter', 'p', 'n', 'return', 'line', 'end', 'feed']):
        yield f'broken-signature-{name}.png', whole[:at] + b'\1' + whole[at + 1:]
    yield 'broken-as-text.png', whole.replace(b'\r\n', b'\n', 1)
    for name, at, value in [
        ('color-1', 9, 1), ('color-5', 9, 5), ('color-9', 9, 9), ('depth-0', 8, 0), ('depth-3', 8, 3),
        ('depth-99', 8, 99), ('depth-4-of-rgb', 8, 4), ('compression', 10, 1), ('filter', 11, 1),
        ('interlace', 12, 2), ('no-width', 3, 0), ('no-height', 7, 0),
    ]:
        changed = head[:at] + bytes([value]) + head[at + 1:]
        yield f'broken-{name}.png', SIGNATURE + chunk(b'IHDR', changed) + rest
    yield 'broken-check-of-head.png', SIGNATURE + chunk(b'IHDR', head, 1) + rest
    coded = zlib.compress(data(samples(2, 8, 32, 32), 2, 8, False, lambda y: 0))
    end = chunk(b'IEND', b'')
    start = SIGNATURE + chunk(b'IHDR', head)
    yield 'broken-check-of-data.png', start + chunk(b'IDAT', coded, 1) + end
    yield 'broken-sum-of-data.png', start + chunk(b'IDAT', coded[:-1] + bytes([coded[-1] ^ 1])) + end
    yield 'broken-no-data.png', start + end
    yield 'broken-no-head.png', SIGNATURE + rest
    yield 'broken-no-end.png', start + chunk(b'IDAT', coded[:-9])
    yield 'broken-few-rows.png', start + chunk(b'IDAT', zlib.compress(bytes(97 * 31))) + end
    yield 'broken-half-a-row.png', start + chunk(b'IDAT', zlib.compress(bytes(97 * 31 + 50))) + end
    yield 'broken-filter-5.png', start + chunk(b'IDAT', zlib.compress(b'\5' * 97 * 32)) + end
    yield 'broken-no-stream.png', start + chunk(b'IDAT', b'no stream at all') + end
    yield 'broken-unknown-and-needed.png', start + chunk(b'ABCD', b'') + chunk(b'IDAT', coded) + end
    indices = struct.pack('>IIBBBBB', 32, 32, 8, 3, 0, 0, 0)
    coded = zlib.compress(data(samples(3, 8, 32, 32), 3, 8, False, lambda y: 0))
    yield 'broken-no-palette.png', (
        SIGNATURE + chunk(b'IHDR', indices) + chunk(b'IDAT', coded) + end)
