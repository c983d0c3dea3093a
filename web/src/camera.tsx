// SPDX-License-Identifier: Apache-2.0
// The camera as an input: one picture after another, as fast as the model answers.
import { useEffect, useRef, useState } from "preact/hooks";

const MOST_SIDE = 960;

/** The picture that the camera shows now. */
async function frameOf(video: HTMLVideoElement): Promise<File> {
  const scale = Math.min(1, MOST_SIDE / Math.max(video.videoWidth, video.videoHeight));
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(video.videoWidth * scale);
  canvas.height = Math.round(video.videoHeight * scale);
  canvas.getContext("2d")!.drawImage(video, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/jpeg", 0.92));
  if (!blob) throw new Error("the camera gives no picture");
  return new File([blob], "camera.jpg", { type: blob.type });
}

export function Camera({ onFrame }: { onFrame: (file: File) => Promise<void> }) {
  const [stream, setStream] = useState<MediaStream>();
  const [error, setError] = useState<string>();
  const video = useRef<HTMLVideoElement>(null);
  const send = useRef(onFrame);
  send.current = onFrame;

  const start = async () => {
    setError(undefined);
    try {
      if (!navigator.mediaDevices) throw new Error("this browser gives pages no camera");
      setStream(await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } }));
    } catch (e) {
      setError(`The camera cannot be used: ${(e as Error).message}`);
    }
  };

  useEffect(() => {
    const element = video.current;
    if (!stream || !element) return;
    let isOn = true;
    element.srcObject = stream;
    const run = async () => {
      try {
        await element.play();
        while (isOn) {
          await send.current(await frameOf(element));
          await new Promise((done) => requestAnimationFrame(done));
        }
      } catch (e) {
        if (isOn) setError((e as Error).message);
      }
    };
    run();
    return () => {
      isOn = false;
      for (const track of stream.getTracks()) track.stop();
    };
  }, [stream]);

  return (
    <>
      <button type="button" aria-pressed={stream !== undefined} onClick={() => (stream ? setStream(undefined) : start())}>{stream ? "Stop the camera" : "Camera"}</button>
      {stream && <video ref={video} class="thumb" muted playsInline aria-label="The camera" />}
      {error && <p class="error small">{error}</p>}
    </>
  );
}
