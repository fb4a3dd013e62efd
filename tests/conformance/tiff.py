"""Makes TIFF files with ImageMagick and Pillow (both libtiff); compares with ImageMagick."""

import itertools

from PIL import Image

from common import output, scene, shown, side_by_side

SIZE = 67, 45
# ffmpeg decodes these: strips as ImageMagick does, but tiles as noise, so murald refuses tiles.
BY_FFMPEG = 'palette', 'palette4', 'grey2', 'grey4', 'grey-alpha', 'P', 'LA'


def make(cases):
    source = cases.path('scene.png')
    picture = scene(*SIZE)
    picture.save(source)
    picture.putalpha(Image.radial_gradient('L').resize(SIZE))
    picture.save(cases.path('alpha.png'))
    files = list(wanted(cases.whole))
    parts = [files[at:at + 20] for at in range(0, len(files), 20)]
    side_by_side(lambda some: convert(cases, some), parts)
    for least, why in sorted({file[2] for file in files}, key=str):
        shown(cases, [file[0] for file in files if file[2] == (least, why)], least=least, why=why,
              options=['-auto-orient'])
    by_pillow(cases)
    refused(cases, source)


def convert(cases, files):
    """Makes several files with one command."""
    command = ['convert', '-respect-parenthesis']
    for name, arguments, _, source in files:
        command += ['(', cases.path(source), *arguments, '-write', cases.path(name), '+delete', ')']
    output([*command, 'xc:none', 'null:'])


def wanted(whole):
    """Name, ImageMagick's arguments, likeness and known difference, and the source file."""
    alike, near = (None, None), (45, None)
    kinds = {
        'rgb': ['-type', 'TrueColor', '-depth', '8'],
        'grey': ['-colorspace', 'Gray', '-depth', '8'],
        'grey16': ['-colorspace', 'Gray', '-depth', '16'],
        'rgb16': ['-depth', '16'],
        'bilevel': ['-colorspace', 'Gray', '-threshold', '50%', '-type', 'Bilevel'],
        'grey4': ['-colorspace', 'Gray', '-depth', '4'],
        'grey2': ['-colorspace', 'Gray', '-depth', '2'],
        'palette': ['+dither', '-colors', '200', '-type', 'Palette'],
        'palette4': ['+dither', '-colors', '16', '-type', 'Palette', '-depth', '4'],
        'inks': ['-colorspace', 'CMYK', '-depth', '8'],
        'alpha': ['-type', 'TrueColorAlpha', '-depth', '8'],
        'alpha16': ['-type', 'TrueColorAlpha', '-depth', '16'],
        'grey-alpha': ['-colorspace', 'Gray', '-type', 'GrayscaleAlpha', '-depth', '8'],
    }
    packings = ['None', 'LZW', 'Zip', 'RLE']
    layouts = {'strips': [], 'one-strip': ['-define', 'tiff:rows-per-strip=45'],
               'rows': ['-define', 'tiff:rows-per-strip=1'],
               'tiles': ['-define', 'tiff:tile-geometry=32x16'],
               'planes': ['-interlace', 'Plane']}
    for (kind, made), packing, (layout, laid), order in itertools.product(
        kinds.items(), packings, layouts.items(), ['msb', 'lsb']
    ):
        if not whole and (packing, layout, order) not in [
            ('None', 'strips', 'msb'), ('LZW', 'tiles', 'lsb'), ('RLE', 'planes', 'msb'),
            ('Zip', 'rows', 'lsb')]:
            continue
        lossy = kind in ('inks', 'palette')
        if kind in BY_FFMPEG:
            like = None, 'photometric interpretation'
        else:
            like = near if lossy else alike
        yield (f'{kind}-{packing}-{layout}-{order}.tiff',
               [*made, '-compress', packing, *laid, '-define', f'tiff:endian={order}'],
               like, 'alpha.png' if 'alpha' in kind else 'scene.png')
    for predictor, kind in itertools.product([1, 2], ['rgb', 'grey16', 'alpha']):
        for packing in ['LZW', 'Zip']:
            yield (f'predictor{predictor}-{kind}-{packing}.tiff',
                   [*kinds[kind], '-compress', packing, '-define', f'tiff:predictor={predictor}'],
                   alike, 'alpha.png' if 'alpha' in kind else 'scene.png')
    for turn in ['TopLeft', 'TopRight', 'BottomRight', 'BottomLeft', 'LeftTop', 'RightTop',
                 'RightBottom', 'LeftBottom']:
        yield f'{turn}.tiff', ['-orient', turn, '-compress', 'LZW'], alike, 'scene.png'
    for size in ['1x1', '1x9', '9x1', '7x3', '16x16', '17x33'] if whole else ['1x1', '7x3']:
        for kind in ['rgb', 'bilevel', 'grey4', 'palette4']:
            like = (None, 'photometric interpretation') if kind in BY_FFMPEG else alike
            yield (f'size{size}-{kind}.tiff', ['-resize', size + '!', *kinds[kind], '-compress', 'LZW'],
                   like, 'scene.png')
    yield 'group4.tiff', [*kinds['bilevel'], '-compress', 'Group4'], alike, 'scene.png'
    yield ('fax.tiff', [*kinds['bilevel'], '-compress', 'Fax'],
           (None, 'compression 3'), 'scene.png')
    yield 'minwhite.tiff', [
        *kinds['grey'], '-define', 'quantum:polarity=min-is-white'], alike, 'scene.png'
    for kind, arguments in {
        'strips': [], 'grey': kinds['grey'], 'tiles': layouts['tiles'], 'planes': layouts['planes'],
        'inks': kinds['inks'],
        'minwhite': [*kinds['grey'], '-define', 'quantum:polarity=min-is-white'],
    }.items():
        yield (f'photographs-{kind}.tiff', ['-compress', 'JPEG', '-quality', '90', *arguments], near,
               'scene.png')


def by_pillow(cases):
    picture, names, others = scene(*SIZE), [], []
    for mode, packing in itertools.product(
        ['1', 'L', 'P', 'RGB', 'RGBA', 'CMYK', 'LA', 'YCbCr', 'I;16'],
        [None, 'tiff_lzw', 'tiff_adobe_deflate', 'packbits', 'group4'],
    ):
        if packing == 'group4' and mode != '1' or mode == 'YCbCr' and packing:
            continue
        name = f'pillow-{mode.replace(";", "")}-{packing}.tiff'
        made = picture.convert('I').point(lambda v: v * 257) if mode == 'I;16' else None
        made = made.convert('I;16') if made else picture.convert(mode)
        made.save(cases.path(name), compression=packing)
        (others if mode in BY_FFMPEG else names).append(name)
    shown(cases, names, least=45)
    shown(cases, others, why='photometric interpretation')


def refused(cases, source):
    whole = output(['convert', source, '-compress', 'LZW', 'tiff:-'])
    for name, content in [('half', whole[:len(whole) // 2]), ('head', whole[:8]),
                          ('magic', whole[:2] + b'\x2b' + whole[3:]),
                          ('nowhere', whole[:4] + b'\xff\xff\xff\x7f' + whole[8:])]:
        cases.write(f'broken-{name}.tiff', content)
        cases.add(f'broken-{name}.tiff', (1, 1), 'the specification')
