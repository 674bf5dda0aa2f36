// A service worker that answers whatever it gets hold of.
self.onfetch = (event) => event.respondWith(new Response('stolen'))
