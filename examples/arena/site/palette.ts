// Colours that more than one file needs, and the soft round light that everything glows with.

const COLOURS = ['#4de8ff', '#ff5fa2', '#ffc94d', '#8cff7a', '#b08cff', '#ff8a5c', '#6ba8ff', '#f2f5ff']

export const SHARD = '#9fe9ff'
export const GOLD = '#ffd45e'

/** A player's colour, the same in every window. */
export function colourOf(index: number): string {
  return COLOURS[index % COLOURS.length] ?? '#ffffff'
}

const GLOW_PIXELS = 128

/** Glows by colour: drawing a picture is many times cheaper than blurring a shadow in every frame. */
export function createGlows(): (colour: string) => HTMLCanvasElement {
  const glows = new Map<string, HTMLCanvasElement>()
  return (colour) => {
    const known = glows.get(colour)
    if (known !== undefined) return known
    const canvas = document.createElement('canvas')
    canvas.width = canvas.height = GLOW_PIXELS
    const brush = canvas.getContext('2d')!
    const half = GLOW_PIXELS / 2
    const light = brush.createRadialGradient(half, half, 0, half, half, half)
    light.addColorStop(0, `${colour}cc`)
    light.addColorStop(0.25, `${colour}55`)
    light.addColorStop(0.6, `${colour}14`)
    light.addColorStop(1, `${colour}00`)
    brush.fillStyle = light
    brush.fillRect(0, 0, GLOW_PIXELS, GLOW_PIXELS)
    glows.set(colour, canvas)
    return canvas
  }
}
