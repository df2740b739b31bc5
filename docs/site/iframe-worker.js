// Search runs in a worker, which browsers refuse to pages opened from disk. There, an invisible frame does its work.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.append(this.frame)
      const inside = this.frame.contentWindow
      inside.postMessage = (data) => setTimeout(() => this.onmessage?.({ data }))
      this.loaded = new Promise((done, failed) => {
        const script = inside.document.createElement("script")
        script.src = new URL(url, location)
        script.onload = done
        script.onerror = failed
        inside.document.body.append(script)
      })
      this.loaded.catch((error) => this.onerror?.(error))
    }

    postMessage(data) {
      this.loaded.then(() => this.frame.contentWindow.onmessage?.({ data }), () => {})
    }

    terminate() {
      this.frame.remove()
    }
  }
}
