import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { query_client } from './api/queries.ts'
import { router } from './router.tsx'
import { applyTheme } from './shell/theme.ts'
import './styles.css'

applyTheme()
const root = document.getElementById('root')
if (root === null) throw new Error('index.html has no element with the id root.')
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={query_client}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
)
