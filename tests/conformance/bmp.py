"""Writes BMP files of all depths, run-length codings, bit fields and headers; compares with ImageMagick."""

import itertools
import random
import struct

from common import scene, shown

SIZE = 29, 17


def colors(count, width):
    """A colour table: blue, green, red, and in newer versions an unused byte."""
    return b''.join(bytes([at * 91 & 255, 255 - at * 255 // count, at * 255 // count, 0][:width])
                    for at in range(count))


def bmp(bits, pixels, *, size=SIZE, header=40, table=b'', compression=0, masks=None, down=False,
        used=0, gap=0):
    width, height = size
    if header == 12:
        info = struct.pack('<IHHHH', 12, width, height, 1, bits)
    else:
        info = struct.pack('<IiiHHIIiiII', header, width, -height if down else height, 1, bits,
                           compression, len(pixels), 2835, 2835, used, 0)
        behind = b''
        if masks:
            fields = struct.pack(f'<{len(masks)}I', *masks)
            info, behind = (info + fields, b'') if header > 40 else (info, fields)
        if header >= 108:
            info = info.ljust(56, b'\0') + b'BGRs'
        info = info.ljust(header, b'\0') + behind
    at = 14 + len(info) + len(table) + gap
    return (b'BM' + struct.pack('<IHHI', at + len(pixels), 0, 0, at) + info + table + bytes(gap)
            + pixels)


def rows(bits, size=SIZE, down=False):
    """Rows of indices or of whole pixels, from the bottom or the top."""
    picture = scene(*size)
    lines = []
    for y in range(size[1]) if down else reversed(range(size[1])):
        line = [picture.getpixel((x, y)) for x in range(size[0])]
        lines.append([r >> (8 - bits) if bits <= 8 else (r, g, b) for r, g, b in line])
    return lines


def packed(bits, lines, pack=None):
    out = bytearray()
    for line in lines:
        if bits <= 8:
            text = ''.join(f'{value:0{bits}b}' for value in line)
            text += '0' * (-len(text) % 8)
            row = bytes(int(text[at:at + 8], 2) for at in range(0, len(text), 8))
        else:
            row = b''.join(pack(*pixel) for pixel in line)
        out += row + bytes(-len(row) % 4)
    return bytes(out)


def fields(masks, bits):
    """Encodes a pixel in bit fields; half transparent if there is an alpha mask."""
    def put(*pixel):
        value = 0
        for channel, mask in zip((*pixel, 128), masks):
            if mask:
                low = (mask & -mask).bit_length() - 1
                most = mask >> low
                value |= (channel * most // 255) << low
        return value.to_bytes(bits // 8, 'little')
    return put


def runs(bits, lines, kind):
    """Run-length coding: `runs` only, with `literals` too, or with `skips` too."""
    numbers, out = random.Random(kind), bytearray()
    for line in lines:
        at = 0
        while at < len(line):
            run = 1
            while at + run < len(line) and line[at + run] == line[at] and run < 255:
                run += 1
            if kind == 'skips' and run > 6:
                out += bytes([0, 2, run, 0])
            elif kind != 'runs' and at + 5 <= len(line) and run < 3:
                count = min(len(line) - at, numbers.randrange(3, 9))
                if count < 3:
                    count = len(line) - at
                values = line[at:at + count]
                if bits == 4:
                    values = [*values, 0] if count % 2 else values
                    values = [high << 4 | low for high, low in zip(values[::2], values[1::2])]
                out += bytes([0, count, *values]) + bytes(len(values) % 2)
                run = count
            else:
                value = line[at] if bits == 8 else line[at] << 4 | line[at]
                out += bytes([run, value])
            at += run
        out += b'\0\0'
    return bytes(out[:-2]) + b'\0\1'


def make(cases):
    files = dict(wanted(cases.whole))
    for name, content in files.items():
        cases.write(name, content)
    by_others = [name for name in files if not name.startswith(('fields', 'alpha'))]
    # ffmpeg decodes OS/2's second version.
    old = [name for name in by_others if 'header64' in name]
    shown(cases, old, least=45, why='Unknown bitmap header type (size=64)')
    # Pixels that a run-length code skips have no defined colour: ImageMagick, ffmpeg and Pillow use the
    # first of the table; in browsers, gdk-pixbuf and imlib2 they are transparent. Ours are black, the
    # default fill colour.
    skips = [name for name in by_others if 'skips' in name]
    shown(cases, skips, why='skipped pixels')
    # Decoders expand five bits to eight by repeating them or by rounding.
    short = [name for name in by_others if name.startswith(('plain16', 'from-the-top16', 'gap16'))]
    short = [name for name in short if name not in old]
    shown(cases, short, least=45)
    shown(cases, [name for name in by_others if name not in [*old, *skips, *short]])
    for name, _, _, masks in fielded():
        cases.add(name, SIZE, 'the specification', pixels=seen(masks), least=45)
    whole = bmp(24, packed(24, rows(24), lambda r, g, b: bytes([b, g, r])))
    for name, content in [
        ('half', whole[:len(whole) // 2]), ('no-pixels', whole[:54]), ('bits', whole[:28] + b'\7\0' + whole[30:]),
        ('compression', whole[:30] + b'\x63' + whole[31:]), ('no-width', whole[:18] + bytes(4) + whole[22:]),
        ('no-height', whole[:22] + bytes(4) + whole[26:]), ('header', whole[:14] + b'\x29' + whole[15:]),
        ('less-than-no-width', whole[:18] + b'\xff\xff\xff\xff' + whole[22:]),
    ]:
        cases.write(f'broken-{name}.bmp', content)
        cases.add(f'broken-{name}.bmp', (1, 1), 'the specification')


def wanted(whole):
    sizes = [(w, h) for w in range(1, 10) for h in (1, 2, 5)] if whole else [(1, 1), (5, 2)]
    for bits, header in itertools.product([1, 4, 8], [12, 40, 64, 108, 124]):
        for size in [SIZE, *sizes]:
            table = colors(1 << bits, 3 if header == 12 else 4)
            name = f'index{bits}-header{header}-{size[0]}x{size[1]}.bmp'
            yield name, bmp(bits, packed(bits, rows(bits, size)), size=size, header=header, table=table)
    plain = {24: lambda r, g, b: bytes([b, g, r]), 32: lambda r, g, b: bytes([b, g, r, 0]),
             16: fields((0x7c00, 0x3e0, 0x1f), 16)}
    for bits, header in itertools.product(plain, [12, 40, 64, 108, 124]):
        if header == 12 and bits != 24:
            continue
        for size in [SIZE, *sizes]:
            name = f'plain{bits}-header{header}-{size[0]}x{size[1]}.bmp'
            pixels = packed(bits, rows(bits, size), plain[bits])
            yield name, bmp(bits, pixels, size=size, header=header)
    for name, bits, header, masks in fielded():
        pixels = packed(bits, rows(bits), fields(masks, bits))
        yield name, bmp(bits, pixels, header=header, compression=3, masks=masks)
    for bits, kind in itertools.product([4, 8], ['runs', 'literals', 'skips']):
        lines = [[value >> 5 << 1 for value in line] for line in rows(8)]
        content = bmp(bits, runs(bits, lines, kind), table=colors(1 << bits, 4),
                      compression=1 if bits == 8 else 2)
        yield f'rle{bits}-{kind}.bmp', content
    for bits in [1, 4, 8, 16, 24, 32]:
        table = colors(1 << bits, 4) if bits <= 8 else b''
        pixels = packed(bits, rows(bits, down=True), plain.get(bits))
        yield f'from-the-top{bits}.bmp', bmp(bits, pixels, table=table, down=True)
        pixels = packed(bits, rows(bits), plain.get(bits))
        yield f'gap{bits}.bmp', bmp(bits, pixels, table=table, gap=12)
    few = [[value % 100 for value in line] for line in rows(8)]
    yield 'few-colors.bmp', bmp(8, packed(8, few), table=colors(100, 4), used=100)


def fielded():
    """Name, bits, header and masks of files with bit fields. ImageMagick reads some sizes only."""
    for bits, masks in [
        (16, (0xf800, 0x7e0, 0x1f)), (16, (0x7c00, 0x3e0, 0x1f)), (16, (0xf00, 0xf0, 0xf)),
        (16, (0x1f, 0x7e0, 0xf800)), (32, (0xff0000, 0xff00, 0xff)), (32, (0xff, 0xff00, 0xff0000)),
        (32, (0xff000000, 0xff0000, 0xff00)), (32, (0x3ff00000, 0xffc00, 0x3ff)),
    ]:
        for header in [40, 52, 108, 124]:
            name = f'fields{bits}-{"-".join(f"{mask:x}" for mask in masks)}-header{header}.bmp'
            yield name, bits, header, masks
    for bits, masks in [(32, (0xff0000, 0xff00, 0xff, 0xff000000)), (16, (0xf00, 0xf0, 0xf, 0xf000)),
                        (16, (0x7c00, 0x3e0, 0x1f, 0x8000))]:
        for header in [56, 108, 124]:
            yield f'alpha{bits}-{masks[3]:x}-header{header}.bmp', bits, header, masks


def seen(masks):
    """The expected RGBA pixels of the scene in bit fields. With one bit of alpha all of it would be hidden,
    so such a picture is opaque."""
    picture, out = scene(*SIZE), bytearray()
    masks = masks[:3] if bin((*masks, 0)[3]).count('1') == 1 else masks
    for y in range(SIZE[1]):
        for x in range(SIZE[0]):
            for value, mask in zip((*picture.getpixel((x, y)), 128), (*masks, 0)[:4]):
                most = mask >> (mask & -mask).bit_length() - 1 if mask else 0
                out.append(round((value * most // 255) * 255 / most) if most else 255)
    return bytes(out)
