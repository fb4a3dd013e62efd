"""Makes JPEG files with cjpeg and Pillow; compares with djpeg and Pillow, and at reduced sizes with the
definition of the transform."""

import concurrent.futures
import io
import itertools

from PIL import Image

from common import opaque, output, scene, side_by_side
from frequencies import Picture

ONE_EACH = '0; 1; 2;'
SCRIPTS = {
    'default': None,
    'spectral': '0,1,2: 0-0, 0, 0; 0: 1-5, 0, 0; 2: 1-63, 0, 0; 1: 1-63, 0, 0; 0: 6-63, 0, 0;',
    'successive': '0,1,2: 0-0, 0, 3; 0: 1-63, 0, 3; 1: 1-63, 0, 3; 2: 1-63, 0, 3;'
    '0,1,2: 0-0, 3, 2; 0: 1-63, 3, 2; 1: 1-63, 3, 2; 2: 1-63, 3, 2;'
    '0,1,2: 0-0, 2, 1; 0: 1-63, 2, 1; 1: 1-63, 2, 1; 2: 1-63, 2, 1;'
    '0,1,2: 0-0, 1, 0; 0: 1-63, 1, 0; 1: 1-63, 1, 0; 2: 1-63, 1, 0;',
    'apart': '0: 0-0, 0, 1; 1: 0-0, 0, 0; 2: 0-0, 0, 0; 0: 0-0, 1, 0;'
    '2: 1-20, 0, 1; 2: 21-63, 0, 0; 2: 1-20, 1, 0; 1: 1-63, 0, 0; 0: 1-2, 0, 2; 0: 3-63, 0, 1;'
    '0: 1-2, 2, 1; 0: 1-2, 1, 0; 0: 3-63, 1, 0;',
    'each': '0,1,2: 0-0, 0, 0;' + ''.join(
        f'{part}: {at}-{min(at + 1, 63)}, 0, 0;' for part in range(3) for at in range(1, 64, 2)),
    'deep': '0,1,2: 0-0, 0, 0;' + ''.join(
        f'{part}: 1-63, {high}, {low};' for part in range(3)
        for high, low in [(0, 8), *((bit, bit - 1) for bit in range(8, 0, -1))]),
}


def make(cases):
    jobs = list(wanted(cases))
    side_by_side(lambda job: encode(cases, *job), jobs)
    files = [(name, size, 1 if '-grayscale' in arguments else 3, sides)
             for name, size, _, arguments, sides in jobs]
    for name, size, _, _ in files:
        command = ['djpeg', '-dct', 'int', '-pnm', cases.path(name)]
        cases.add(name, size, 'djpeg', command=command, least=45)
    files += inks(cases)
    reduced(cases, files)
    refused(cases)


def wanted(cases):
    """Name, size, kind of scene, cjpeg's arguments, and the reduced sides of blocks."""
    whole = cases.whole
    size = (67, 45)
    for sampling, each in samplings(whole):
        name = 'sampled-' + '-'.join(f'{h}x{v}' for h, v in sampling) + ('-each' if each else '')
        arguments = ['-sample', ','.join(f'{h}x{v}' for h, v in sampling), '-quality', '92']
        script = ['-scans', ONE_EACH] if each else []
        yield name + '.jpg', size, 'soft', arguments + script, sides(size, sampling)
    lengths = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33] if whole else [1, 17]
    for sample in ['1x1', '2x1', '1x2', '2x2', '4x1', '1x4', '4x2'] if whole else ['2x1', '2x2']:
        for size in itertools.product(lengths, lengths):
            name = f'size-{size[0]}x{size[1]}-{sample}.jpg'
            yield name, size, 'soft', ['-sample', sample], sides(size)
    size = (72, 56)
    for quality in range(1, 101) if whole else [1, 90]:
        for kind, sample in itertools.product(['soft', 'noise'], ['1x1', '2x2']):
            name = f'quality-{quality}-{sample}-{kind}.jpg'
            yield name, size, kind, ['-quality', str(quality), '-sample', sample], sides(size)
    restarts = ['1', '2', '3', '1B', '2B', '5B', '7B'] if whole else ['1', '5B']
    samples = ['1x1', '2x1', '2x2'] if whole else ['2x2']
    for restart, sample in itertools.product(restarts, samples):
        for more in [[], ['-progressive'], ['-optimize'], ['-grayscale']]:
            name = '-'.join(['restart', restart, sample, *(word[1:] for word in more)]) + '.jpg'
            yield name, size, 'soft', ['-restart', restart, '-sample', sample, *more], sides(size)
    for (script, text), sample in itertools.product(SCRIPTS.items(), [*samples, '4x1']):
        for quality in [30, 75, 100] if whole else [90]:
            arguments = ['-progressive'] if text is None else ['-scans', text]
            name = f'scans-{script}-{sample}-{quality}.jpg'
            arguments = [*arguments, '-sample', sample, '-quality', str(quality)]
            yield name, size, 'soft', arguments, sides(size)
    for kind, more in itertools.product(['soft', 'noise'], [
        ['-grayscale'], ['-rgb'], ['-grayscale', '-progressive'], ['-rgb', '-progressive'],
        ['-grayscale', '-quality', '1'], ['-baseline', '-quality', '5'],
    ]):
        name = '-'.join(['colours', *(word.strip('-') for word in more), kind]) + '.jpg'
        yield name, size, kind, more, sides(size)


def samplings(whole):
    """Sampling factors of three components that divide the largest one, and whether each component needs
    its own scan, as an interleaved MCU has at most ten blocks."""
    factors = list(itertools.product(range(1, 5), range(1, 5)))
    if not whole:
        few = [((2, 2), (1, 1), (1, 1)), ((4, 1), (1, 1), (2, 1)), ((1, 1), (2, 2), (1, 2)),
               ((3, 1), (1, 1), (1, 1)), ((1, 4), (1, 2), (1, 1)), ((4, 4), (2, 1), (1, 4))]
        yield from ((three, sum(h * v for h, v in three) > 10) for three in few)
        return
    for three in itertools.product(factors, repeat=3):
        most = max(h for h, _ in three), max(v for _, v in three)
        if all(most[0] % h == 0 and most[1] % v == 0 for h, v in three):
            yield three, sum(h * v for h, v in three) > 10


def sides(size, sampling=((2, 2), (1, 1), (1, 1))):
    """The reduced sides of blocks with which the picture is decoded; none if a component has a third of
    the samples."""
    most = max(h for h, _ in sampling), max(v for _, v in sampling)
    thirds = any(most[0] == 3 * h or most[1] == 3 * v for h, v in sampling)
    return [] if thirds or max(size) < 16 else [4, 2, 1]


def encode(cases, name, size, kind, arguments, _):
    arguments = list(arguments)
    if '-scans' in arguments:
        at = arguments.index('-scans') + 1
        script = cases.path(name + '.scans')
        with open(script, 'w', encoding='ascii') as file:
            file.write(arguments[at])
        arguments[at] = script
    picture = scene(*size, kind)
    header = f'P6\n{size[0]} {size[1]}\n255\n'.encode()
    cases.write(name, output(['cjpeg', *arguments], header + picture.tobytes()))


def decoded(job):
    """The pixels of a file for each side of blocks."""
    path, components, sides_wanted = job
    picture = Picture(path, components)
    return [picture.pixels(side) for side in sides_wanted]


def inks(cases):
    """CMYK files, and the same data marked as YCCK in Adobe's segment."""
    for size, sampling, progressive, kind in itertools.product(
        [(72, 56), (33, 17), (1, 1)] if cases.whole else [(33, 17)], [0, 1, 2], [False, True], ['soft', 'noise']
    ):
        picture = scene(*size, kind)
        black = Image.effect_noise(size, 40)
        picture = Image.merge('CMYK', [*picture.split(), black])
        file = io.BytesIO()
        picture.save(file, 'JPEG', quality=90, subsampling=sampling, progressive=progressive)
        for colors in ['cmyk', 'ycck']:
            content = bytearray(file.getvalue())
            adobe = content.index(b'Adobe')
            content[adobe + 11] = 2 if colors == 'ycck' else 0
            name = f'{colors}-{size[0]}x{size[1]}-{sampling}-{kind}' + '-p' * progressive + '.jpg'
            cases.write(name, content)
            pixels = opaque(Image.open(io.BytesIO(content)).convert('RGB').tobytes(), 3)
            cases.add(name, size, 'Pillow', pixels=pixels, least=45)
            yield name, size, 4, sides(size)


def reduced(cases, files):
    """Adds the same files at reduced sizes."""
    files = [file for file in files if file[3]]
    jobs = [(cases.path(name), components, sides) for name, _, components, sides in files]
    with concurrent.futures.ProcessPoolExecutor() as pool:
        for (name, _, _, sides), found in zip(files, pool.map(decoded, jobs, chunksize=8)):
            for side, (pixels, size) in zip(sides, found):
                cases.add(name, size, 'the transform', pixels=pixels, side=side, least=45)


def refused(cases):
    """Files that murald's decoder refuses, with the reason."""
    size = (72, 56)
    for more in [[], ['-progressive'], ['-grayscale']]:
        name = '-'.join(['arithmetic', *(word[1:] for word in more)]) + '.jpg'
        encode(cases, name, size, 'soft', ['-arithmetic', *more], None)
        command = ['djpeg', '-pnm', cases.path(name)]
        cases.add(name, size, 'djpeg', command=command, why='arithmetic coding')
