"""Sound in the time domain: the impulse response of a frequency response, and WAV files of it.

p(t) = ∫ p(f) e^{2πift} df over the band and its mirror image, by an inverse FFT. Steps of Δf in the band give 1/Δf
seconds, after which the sound repeats. A band that begins above 0 Hz lacks the lower frequencies. A cosine taper at
both ends of the band keeps its edges from ringing.
"""
from __future__ import annotations

import math
import numbers

import numpy as np

from swell.core.errors import InputError
from swell.pde.helmholtz.frequency_response import Response

TAPER = 0.1             # fraction of the band that the taper takes at each end
PEAK = 0.9              # largest sample of a WAV file, of full scale
UNEVEN = 1e-6           # largest deviation of a band's steps, relative to the step
FEWEST = 8              # frequencies: fewer are tones, no sound of an impulse


def impulse(response, rate=44_100):
    """Return (t, p): the sound at each ear after an impulse of each source.

    Parameters
    ----------
    response : Response
        All frequencies solved, in equal steps Δf, each a multiple of Δf.
    rate : int
        Samples a second; at least twice the highest frequency.

    Returns
    -------
    t : ndarray, shape (samples,)
        s; from 0 to 1/Δf.
    p : ndarray, shape (samples, ears) or (samples, sources, ears)
        Pa s⁻¹ for the sources' amplitudes: the response to a unit impulse of each.

    Raises
    ------
    InputError
        For failed frequencies, unequal steps, or a rate that is too low.
    """
    if not isinstance(response, Response):
        raise InputError(f"response is of type {type(response).__name__}: expected what Helmholtz.response returns")
    order = np.argsort(response.frequencies, kind="stable")
    f = response.frequencies[order]
    if not response.converged:
        raise InputError(f"{len(f) - len(response.failed)} of {response.asked} frequencies are solved: the sound needs "
                         "all of them; see print(response)")
    if not len(response.ears):
        raise InputError("a sound needs an ear: give ear, a point or a list of points")
    step, numbered = spacing(f)
    if isinstance(rate, bool) or not isinstance(rate, numbers.Integral) or rate < 2 * f[-1]:
        raise InputError(f"rate={rate!r}: expected a whole number of samples a second, at least "
                         f"{math.ceil(2 * f[-1])}, twice the highest frequency, {f[-1]:g} Hz")
    samples = int(round(rate / step))
    spectrum = np.zeros((samples // 2 + 1, *response.pressure.shape[1:]), complex)
    taper = _taper(f)
    spectrum[numbered.astype(int)] = response.pressure[order] * taper.reshape(-1, *[1] * (spectrum.ndim - 1))
    return np.arange(samples) / (samples * step), np.fft.irfft(spectrum, samples, axis=0) * samples * step


def spacing(f):
    """Return (Δf, f / Δf rounded) of ascending frequencies; raise InputError for a band that makes no sound."""
    f = np.asarray(f, float)
    if len(f) < FEWEST:
        raise InputError(f"the band has {len(f)} frequenc{'y' if len(f) == 1 else 'ies'}: a sound needs {FEWEST} or "
                         "more in equal steps, such as band('10:500:10')")
    steps = np.diff(f)
    step = steps.mean()
    numbered = np.rint(f / step)
    if step <= 0 or (abs(steps - step) > UNEVEN * step).any() or (abs(f / step - numbered) > 1e-3).any():
        raise InputError(f"the band from {f[0]:g} to {f[-1]:g} Hz has steps of {steps.min():g} to {steps.max():g} Hz: "
                         "the sound needs equal steps, and frequencies that are multiples of the step, such as "
                         "band('10:500:10')")
    return step, numbered


def _taper(f):
    """Return the weights of the frequencies f: 1, but a quarter of a cosine at each end; no taper at an end at 0 Hz."""
    width = TAPER * (f[-1] - f[0])
    rise = np.clip((f - f[0]) / width, 0, 1) if f[0] > f[1] - f[0] else np.ones(f.size)
    return np.sin(0.5 * math.pi * rise) ** 2 * np.sin(0.5 * math.pi * np.clip((f[-1] - f) / width, 0, 1)) ** 2


def write_wav(response, path, source=0, rate=44_100) -> float:
    """Write the sound at the ears after an impulse of one source as a WAV file, a channel for each ear.

    Parameters
    ----------
    response : Response
        As for `impulse`.
    path : path
        A .wav file.
    source : int
        The number of the source, of several.
    rate : int
        Samples a second.

    Returns
    -------
    float
        Pa s⁻¹ of a sample at full scale: the file's largest sample is 0.9.

    Raises
    ------
    InputError
        As `impulse`; for another extension, or a source that does not exist.
    """
    from swell.io.files import to_write, write_atomically
    path = to_write(path, ".wav")
    _, p = impulse(response, rate)
    if p.ndim == 3:
        if isinstance(source, bool) or not isinstance(source, numbers.Integral) or not 0 <= source < p.shape[1]:
            raise InputError(f"source={source!r}: expected the number of a source, 0 to {p.shape[1] - 1}")
        p = p[:, source]
    elif source != 0:
        raise InputError(f"source={source!r}: this response has one source: leave it out")
    scale = float(abs(p).max()) / PEAK or 1.0
    import io

    from scipy.io import wavfile
    stream = io.BytesIO()
    wavfile.write(stream, rate, (p / scale).astype(np.float32))
    write_atomically(path, lambda out: out.write(stream.getvalue()))
    return scale
