"""Makes WebP files with Pillow (libwebp): lossy, lossless, with alpha, animated; compares with Pillow."""

import io
import itertools

from PIL import Image

from common import scene


def make(cases):
    for name, pictures, options in wanted(cases.whole):
        file = io.BytesIO()
        more = dict(save_all=True, append_images=pictures[1:], duration=100) if pictures[1:] else {}
        pictures[0].save(file, 'WEBP', **more, **options)
        content = file.getvalue()
        cases.write(name + '.webp', content)
        # Blending in animations is rounded differently.
        add(cases, name + '.webp', content, len(pictures),
            None if options.get('lossless') and not pictures[1:] else 45)
    whole = content
    for name, content in moving():
        add(cases, name + '.webp', content, 4, 45)
    for name, broken in [
        ('half', whole[:len(whole) // 2]), ('no-end', whole[:-1]), ('no-pictures', whole[:12]),
        ('signature', whole[:8] + b'WEBX' + whole[12:]), ('zeros', whole[:30] + bytes(len(whole) - 30)),
    ]:
        cases.write(f'broken-{name}.webp', broken)
        cases.add(f'broken-{name}.webp', (1, 1), 'the specification')


def add(cases, name, content, frames, least):
    cases.write(name, content)
    shown = Image.open(io.BytesIO(content))
    pixels = []
    for number in range(frames):
        shown.seek(number)
        pixels.append(shown.convert('RGBA').tobytes())
    for count in {1, frames}:
        cases.add(name, shown.size, 'Pillow', pixels=b''.join(pixels[:count]), frames=count,
                  least=least)


def moving():
    """Animations with frames smaller than the canvas, blended or not, disposed of or not. They are assembled
    here, as Pillow leaves these choices to libwebp."""
    for lossless, alpha in itertools.product([False, True], [False, True]):
        for over, keep in itertools.product([False, True], [False, True]):
            frames = []
            for at in range(4):
                width, height, left, top = (61, 43, 0, 0) if at % 3 == 0 else (20 + at, 17, 8 * at, 6)
                # One frame is disposed of in the other way.
                flags = (0 if over else 2) | (0 if keep ^ (at == 2) else 1)
                frames.append(chunk(b'ANMF', b''.join(
                    number.to_bytes(3, 'little')
                    for number in (left // 2, top // 2, width - 1, height - 1, 40 + at))
                    + bytes([flags]) + coded((width, height), lossless, alpha)))
            head = bytes([0x12, 0, 0, 0, 60, 0, 0, 42, 0, 0])
            content = (b'WEBP' + chunk(b'VP8X', head) + chunk(b'ANIM', bytes(6)) + b''.join(frames))
            name = f'frames-{lossless}-{alpha}-{over}-{keep}'.lower()
            yield name, chunk(b'RIFF', content)


def chunk(tag, content):
    return tag + len(content).to_bytes(4, 'little') + content + b'\0' * (len(content) % 2)


def coded(size, lossless, alpha):
    """The chunks with the pixels of a picture."""
    file = io.BytesIO()
    picture(size, alpha).save(file, 'WEBP', lossless=lossless)
    at, content, found = 12, file.getvalue(), b''
    while at < len(content):
        length = int.from_bytes(content[at + 4:at + 8], 'little')
        end = at + 8 + length + length % 2
        if content[at:at + 4] in (b'ALPH', b'VP8 ', b'VP8L'):
            found += content[at:end]
        at = end
    return found


def wanted(whole):
    lengths = [1, 2, 3, 8, 15, 16, 17, 33] if whole else [1, 7, 33]
    sizes = list(itertools.product(lengths, lengths))
    for size, alpha in itertools.product(sizes, [False, True]):
        for lossless in (False, True):
            name = f'{"lossless" if lossless else "lossy"}-{size[0]}x{size[1]}' + '-alpha' * alpha
            yield name, [picture(size, alpha)], dict(lossless=lossless, quality=80)
    size = (61, 43)
    for quality, kind in itertools.product(range(0, 101, 10) if whole else [0, 60, 100],
                                           ['soft', 'noise']):
        for method in range(7) if whole else [0, 6]:
            for lossless in (False, True):
                name = f'{kind}-{"lossless" if lossless else "lossy"}-{quality}-{method}'
                yield name, [scene(*size, kind)], dict(
                    lossless=lossless, quality=quality, method=method)
    for quality in (0, 50, 100):
        yield f'alpha-{quality}', [picture(size, True)], dict(alpha_quality=quality)
    # Few colours are coded as indices of 1, 2, 4 or 8 bits.
    for colors in (2, 3, 4, 15, 16, 17, 250):
        few = scene(*size).quantize(colors, dither=Image.Dither.NONE).convert('RGB')
        yield f'few-{colors}', [few], dict(lossless=True)
        few.putalpha(Image.linear_gradient('L').resize(size).point(lambda v: v & 0xc0))
        yield f'few-{colors}-alpha', [few], dict(lossless=True, exact=True)
    for lossless, alpha in itertools.product([False, True], [False, True]):
        frames = [picture(size, alpha).rotate(90 * turn) for turn in range(3)]
        yield f'moving-{lossless}-{alpha}'.lower(), frames, dict(lossless=lossless)


def picture(size, alpha):
    made = scene(*size)
    if alpha:
        made.putalpha(Image.radial_gradient('L').resize(size))
    return made
