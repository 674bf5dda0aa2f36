// Small sounds, made on the spot: no files.
import { device } from './storage.ts'

const REMEMBERED = 'arena.sound'

export type Sound = {
  is_on: boolean
  toggle(): void
  pick(worth: number): void
  dash(): void
  hit(): void
  win(): void
}

export function createSound(): Sound {
  let context: AudioContext | null = null

  const tone = (
    shape: OscillatorType,
    from_hz: number,
    to_hz: number,
    seconds: number,
    loudness: number,
    after = 0,
  ) => {
    if (!sound.is_on) return
    // Browsers allow sound only after a click; without one the context stays silent, which is right.
    context ??= new AudioContext()
    if (context.state === 'suspended') void context.resume()
    const begin = context.currentTime + after
    const oscillator = context.createOscillator()
    const gain = context.createGain()
    oscillator.type = shape
    oscillator.frequency.setValueAtTime(from_hz, begin)
    oscillator.frequency.exponentialRampToValueAtTime(to_hz, begin + seconds)
    gain.gain.setValueAtTime(loudness, begin)
    gain.gain.exponentialRampToValueAtTime(0.0001, begin + seconds)
    oscillator.connect(gain).connect(context.destination)
    oscillator.start(begin)
    oscillator.stop(begin + seconds)
  }

  const sound: Sound = {
    is_on: device.getItem(REMEMBERED) !== 'off',
    toggle() {
      sound.is_on = !sound.is_on
      device.setItem(REMEMBERED, sound.is_on ? 'on' : 'off')
    },
    pick(worth) {
      tone('sine', worth > 1 ? 880 : 660, worth > 1 ? 1760 : 990, 0.12, 0.07)
      if (worth > 1) tone('sine', 1320, 2640, 0.2, 0.06, 0.08)
    },
    dash: () => tone('sawtooth', 220, 70, 0.2, 0.035),
    hit() {
      tone('square', 190, 40, 0.26, 0.08)
      tone('triangle', 900, 120, 0.18, 0.06)
    },
    win() {
      for (const [index, hz] of [523, 659, 784, 1047].entries()) tone('triangle', hz, hz, 0.3, 0.07, index * 0.11)
    },
  }
  return sound
}
