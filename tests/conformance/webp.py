"""WebP: lossy, lossless, with alpha of each kind, moving; by Pillow (libwebp), against its pixels."""

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
        shown = Image.open(io.BytesIO(content))
        shown.seek(0)
        least = None if options.get('lossless') else 45
        cases.add(name + '.webp', shown.size, 'Pillow', pixels=shown.convert('RGBA').tobytes(),
                  least=least)
    whole = content
    for name, broken in [
        ('half', whole[:len(whole) // 2]), ('no-end', whole[:-1]), ('no-pictures', whole[:12]),
        ('signature', whole[:8] + b'WEBX' + whole[12:]), ('zeros', whole[:30] + bytes(len(whole) - 30)),
    ]:
        cases.write(f'broken-{name}.webp', broken)
        cases.add(f'broken-{name}.webp', (1, 1), 'the specification')


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
    # Few colours are kept as indices, of 1, 2, 4 and 8 bits.
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
