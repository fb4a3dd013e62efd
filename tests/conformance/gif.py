"""Writes GIF files: interlaced, local colour tables, transparency, disposal, frames smaller than the canvas.
Compares the first frame and the following ones with ImageMagick."""

import itertools
import struct

from common import scene, shown


def codes(values, size):
    """Values as LZW codes in GIF's blocks."""
    clear, out, bits, held = 1 << size, bytearray(), 0, 0

    def put(code, width):
        nonlocal bits, held
        bits |= code << held
        held += width
        while held >= 8:
            out.append(bits & 255)
            bits >>= 8
            held -= 8

    table, width = {(at,): at for at in range(clear)}, size + 1
    free = clear + 2
    put(clear, width)
    word = ()
    for value in values:
        if (*word, value) in table:
            word = (*word, value)
            continue
        put(table[word], width)
        if free < 4096:
            table[(*word, value)] = free
            free += 1
            if free - 1 == 1 << width and width < 12:
                width += 1
        else:
            put(clear, width)
            table, width, free = {(at,): at for at in range(clear)}, size + 1, clear + 2
        word = (value,)
    put(table[word], width)
    # The decoder has one more code in its table by now.
    put(clear + 1, width + (free == 1 << width and width < 12))
    if held:
        out.append(bits & 255)
    pieces = [bytes(out[at:at + 255]) for at in range(0, len(out), 255)]
    return bytes([size]) + b''.join(bytes([len(piece)]) + piece for piece in pieces) + b'\0'


def table(bits, turn=0):
    return bytes(value for at in range(1 << bits)
                 for value in (at * 255 >> bits, at * (37 + turn) & 255, 255 - (at * 200 >> bits)))


def frame(width, height, bits, *, at=(0, 0), interlaced=False, own=None, clear=None, disposal=0,
          delay=0, seed=0):
    """A frame of the scene in grey; `clear` is the transparent colour."""
    picture = scene(width, height).convert('L')
    values = [(value >> (8 - bits)) + seed & (1 << bits) - 1 for value in picture.getdata()]
    rows = [values[y * width:(y + 1) * width] for y in range(height)]
    if interlaced:
        rows = rows[::8] + rows[4::8] + rows[2::4] + rows[1::2]
    flags = (0x80 | bits - 1 if own is not None else 0) | (0x40 if interlaced else 0)
    control = b''
    if clear is not None or disposal or delay:
        control = b'\x21\xf9\x04' + struct.pack(
            '<BHBB', disposal << 2 | (clear is not None), delay, clear or 0, 0)
    return (control + b'\x2c' + struct.pack('<HHHHB', *at, width, height, flags)
            + (own if own is not None else b'') + codes(sum(rows, []), max(2, bits)))


def gif(width, height, bits, frames, *, common=True, version=b'89a', background=0):
    flags = 0x80 | 0x70 | bits - 1 if common else 0x70
    return (b'GIF' + version + struct.pack('<HHBBB', width, height, flags, background, 0)
            + (table(bits) if common else b'') + b''.join(frames) + b'\x3b')


def make(cases):
    files = dict(wanted(cases.whole))
    for name, content in files.items():
        cases.write(name, content)
    # Compare the whole canvas, not just the part that the frame covers.
    shown(cases, list(files), options=['-background', 'none', '-alpha', 'set', '-coalesce'])
    for name in files:
        if name.startswith(('disposal', 'moving')):
            command = ['convert', '-background', 'none', cases.path(name), '-alpha', 'set', '-coalesce',
                       '-depth', '8', 'rgba:-']
            cases.add(name, (30, 20), 'ImageMagick', command=command, frames=3)
    whole = gif(20, 10, 3, [frame(20, 10, 3)])
    for name, content in [
        ('no-frame', gif(20, 10, 3, [])), ('half', whole[:len(whole) // 2]),
        ('unknown-block', whole[:-1] + b'\x77\x3b'), ('version', b'GIF90a' + whole[6:]),
        ('few-pixels', gif(20, 10, 3, [frame(20, 9, 3).replace(
            struct.pack('<HH', 20, 9), struct.pack('<HH', 20, 10))])),
    ]:
        cases.write(f'broken-{name}.gif', content)
        cases.add(f'broken-{name}.gif', (1, 1), 'the specification')


def wanted(whole):
    for bits, interlaced, own in itertools.product(range(1, 9), [False, True], [False, True]):
        one = frame(37, 23, bits, interlaced=interlaced, own=table(bits, 5) if own else None)
        name = f'bits{bits}' + '-interlaced' * interlaced + '-own' * own
        yield name + '.gif', gif(37, 23, bits, [one])
        if own:
            yield name + '-alone.gif', gif(37, 23, bits, [one], common=False)
    sizes = range(1, 10) if whole else [1, 2, 5]
    for width, height, interlaced in itertools.product(sizes, sizes, [False, True]):
        one = frame(width, height, 4, interlaced=interlaced)
        yield f'size{width}x{height}' + '-i' * interlaced + '.gif', gif(width, height, 4, [one])
    for bits, clear in [(1, 0), (1, 1), (3, 2), (8, 100), (8, 255)]:
        one = frame(37, 23, bits, clear=clear)
        yield f'clear{bits}-{clear}.gif', gif(37, 23, bits, [one])
    for disposal, clear in itertools.product(range(4), [None, 3]):
        frames = [frame(20, 12, 3, disposal=disposal, clear=clear, delay=10, seed=seed,
                        at=(3 * seed, 2 * seed)) for seed in range(3)]
        yield f'disposal{disposal}-{clear}.gif', gif(30, 20, 3, frames)
        # Interlaced frames with local colours that reach beyond the canvas.
        frames = [frame(20, 12, 3, disposal=disposal, clear=clear, delay=seed, seed=seed,
                        at=(5 * seed, 4 * seed), interlaced=seed != 1,
                        own=table(3, seed) if seed else None) for seed in range(3)]
        yield f'moving{disposal}-{clear}.gif', gif(30, 20, 3, frames)
    for left, top, background in itertools.product([0, 4], [0, 7], [0, 5]):
        one = frame(20, 10, 3, at=(left, top))
        yield f'offset{left}-{top}-{background}.gif', gif(24, 17, 3, [one], background=background)
    yield 'as-87.gif', gif(20, 10, 3, [frame(20, 10, 3)], version=b'87a')
    comment = b'\x21\xfe\x05hello\0' + b'\x21\xff\x0bNETSCAPE2.0\x03\x01\0\0\0'
    yield 'comment.gif', gif(20, 10, 3, [comment, frame(20, 10, 3)])
    # More codes than fit into the table, so that it is cleared.
    yield 'long.gif', gif(200, 150, 8, [frame(200, 150, 8)])
    yield 'no-end.gif', gif(20, 10, 3, [frame(20, 10, 3)])[:-1]
    yield 'outside.gif', gif(10, 10, 3, [frame(20, 12, 3)])
