import tailwindcss from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

export default defineConfig({
  plugins: [react(), tailwindcss()],
  // The platform serves these below a path of its own, for ever: their names have a hash.
  build: {
    outDir: 'dist',
    assetsDir: 'hub-assets',
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // The editor of the config is one large part, loaded on demand.
    chunkSizeWarningLimit: 700,
  },
})
