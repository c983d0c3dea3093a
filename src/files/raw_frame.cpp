// SPDX-License-Identifier: Apache-2.0
#include "files/raw_frame.h"

#include <algorithm>

#include "files/error.h"
#include "files/file.h"
#include "files/image_formats.h"
#include "files/text.h"

namespace moka::files {

namespace {

/// Memory that somebody else owns.
std::shared_ptr<const uint8_t> borrowed(const std::byte* bytes) {
  return {std::shared_ptr<const uint8_t>(), reinterpret_cast<const uint8_t*>(bytes)};
}

/// What the header of YUV4MPEG2 says in words that begin with a letter.
struct Y4mHeader {
  int64_t width = 0, height = 0;
  std::string_view chroma = "420jpeg";
  bool is_full_range = false;
};

Y4mHeader header_of(std::string_view words, std::string_view name) {
  Y4mHeader header;
  for (size_t at = 0; at < words.size();) {
    const size_t end = std::min(words.find(' ', at), words.size());
    const std::string_view word = words.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    const std::string_view value = word.substr(1);
    if (word[0] == 'W' || word[0] == 'H') {
      const auto side = integer_in(value);
      if (!side || *side < 1) damaged(name, "expected a size in the header of YUV4MPEG2, got '", word, "'");
      (word[0] == 'W' ? header.width : header.height) = *side;
    } else if (word[0] == 'C') {
      header.chroma = value;
    } else if (word == "XCOLORRANGE=FULL") {
      header.is_full_range = true;
    }
  }
  if (header.width == 0 || header.height == 0) damaged(name, "the header of YUV4MPEG2 has no width or no height");
  return header;
}

}  // namespace

std::optional<PixelBufferFormat> raw_format_of(std::string_view extension) {
  if (extension == "nv12") return PixelBufferFormat::nv12;
  if (extension == "i420" || extension == "yuv") return PixelBufferFormat::i420;
  if (extension == "p010") return PixelBufferFormat::p010;
  return std::nullopt;
}

PixelBuffer decode_raw_frame(std::span<const std::byte> bytes, const RawFrame& frame, std::string_view extension) {
  const PixelBufferFormat format = frame.format.value_or(raw_format_of(extension).value_or(PixelBufferFormat::nv12));
  if (frame.width == 0 && frame.height == 0)
    refuse(ErrorKind::invalid_argument, "expected ", frame.option_name, " for a file of raw video, got none");
  const size_t wanted = PixelBuffer::contiguous_bytes(frame.width, frame.height, format);
  if (bytes.empty() || bytes.size() % wanted != 0)
    refuse(ErrorKind::invalid_argument, "expected frames of ", wanted, " bytes (", to_string(format), " ", frame.width,
           " x ", frame.height, "), got ", bytes.size(), " bytes");
  PixelBuffer buffer(frame.width, frame.height, format, borrowed(bytes.data()), wanted);
  buffer.matrix = frame.matrix;
  return buffer;
}

PixelBuffer decode_y4m(std::span<const std::byte> bytes, YCbCrMatrix matrix, std::string_view name,
                       int64_t most_pixels) {
  constexpr std::string_view kStart = "YUV4MPEG2 ", kFrame = "FRAME";
  constexpr size_t kLongestHeader = 4096;
  const std::string_view text = text_of(bytes), start = text.substr(0, kLongestHeader);
  const size_t end = start.find('\n');
  if (!text.starts_with(kStart) || end == text.npos) damaged(name, "expected a header of YUV4MPEG2, got another start");
  const Y4mHeader header = header_of(start.substr(kStart.size(), end - kStart.size()), name);
  const std::string_view chroma = header.chroma;
  if (chroma != "420" && chroma != "420jpeg" && chroma != "420mpeg2" && chroma != "420paldv")
    refuse(ErrorKind::unsupported, name, ": expected chroma of 4:2:0 with 8 bits (C420...), got C", chroma);
  require_size(header.width, header.height, most_pixels, name);
  const size_t frame = end + 1, line = text.substr(0, frame + kLongestHeader).find('\n', frame);
  if (!text.substr(std::min(frame, text.size())).starts_with(kFrame) || line == text.npos)
    damaged(name, "expected a frame behind the header, got ", frame >= text.size() ? "the end" : "something else");
  const auto format = header.is_full_range ? PixelBufferFormat::i420_full : PixelBufferFormat::i420;
  const size_t wanted = PixelBuffer::contiguous_bytes(header.width, header.height, format),
               have = text.size() - line - 1;
  if (have < wanted) damaged(name, "expected a frame of ", wanted, " bytes, got ", have);
  PixelBuffer buffer(header.width, header.height, format, borrowed(bytes.data() + line + 1), wanted);
  buffer.matrix = matrix;
  return buffer;
}

}  // namespace moka::files
