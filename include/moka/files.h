// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "moka/description.h"
#include "moka/feature.h"

/// Files of images, sound, arrays and text, and their contents as values of features.
///
/// Every function that reads throws Exception, whose message begins with the file's name:
///   not_found         there is no such file, or no such array in it
///   io                it is not a regular file, or cannot be read
///   malformed         damaged, cut off, or of another kind
///   unsupported       valid, but of a kind that is not read
///   out_of_budget     more pixels than allowed
///   invalid_argument  the contents do not fit the feature, an option is wrong, or the path has a NUL byte
namespace moka {

// ---- Images ----

MOKA_EXPORT std::string_view to_string(ImageFit fit);  ///< "scaleFill", "scaleFit", "centerCrop"
/// The fit of a name that to_string gives. Throws invalid_argument.
MOKA_EXPORT ImageFit image_fit(std::string_view name);

/// The default limit on the pixels of an image that is decoded.
inline constexpr int64_t kMostPixels = int64_t{1} << 27;

/// Decodes PNG, JPEG or WebP, recognized by the first bytes: gray8 for gray files, rgba8 with straight alpha for all
/// others. Rounds samples of 16 bits to 8, ignores color profiles and gamma, and turns JPEGs upright by their EXIF
/// orientation. `name` begins messages.
MOKA_EXPORT Image decode_image(std::span<const std::byte> bytes, std::string_view name = "image",
                               int64_t most_pixels = kMostPixels);
MOKA_EXPORT Image read_image(const std::filesystem::path& path, int64_t most_pixels = kMostPixels);

/// The region of an image in exactly width x height pixels (1 to 65536), in the same format. Resamples with a triangle
/// filter whose support grows when shrinking, so that nothing aliases, with pixel centers at half coordinates and
/// premultiplied alpha, and rounds once. Returns the image itself, which shares its pixels, when nothing changes.
/// Throws invalid_argument (a size, a region that does not lie in the image).
MOKA_EXPORT Image fit_image(const Image& image, int64_t width, int64_t height, ImageFit fit = ImageFit::scale_fill,
                            const ImageRegion& region = {});

/// The size (width, height) in which the model takes an image of width x height: one of the enumerated sizes, or the
/// nearest one within the ranges.
MOKA_EXPORT std::pair<int64_t, int64_t> image_size(const ImageConstraint& constraint, int64_t width, int64_t height);

/// An image as the value of an image feature: in a size that the model takes, as gray8 or rgb8. Images of floats stay
/// floats for features of half floats. Throws invalid_argument.
MOKA_EXPORT Image image_value(const FeatureDescription& feature, const Image& image,
                              ImageFit fit = ImageFit::scale_fill, const ImageRegion& region = {});

/// The same for a picture of a camera, by the fit and region of the buffer.
MOKA_EXPORT Image image_value(const FeatureDescription& feature, const PixelBuffer& buffer);

/// Encodes as PNG; without alpha if every pixel is opaque. Throws invalid_argument for gray floats and half floats.
MOKA_EXPORT std::vector<std::byte> encode_png(const Image& image);

// ---- Sound ----

/// Sound as interleaved samples with a full scale of [-1, 1].
struct Sound {
  uint32_t sample_rate = 0;  ///< hertz
  uint32_t channels = 1;
  std::vector<float> samples;

  size_t frames() const { return channels ? samples.size() / channels : 0; }
};

/// Decodes any format that libsndfile reads: WAV, FLAC, Ogg, Opus, MP3, AIFF, AU, CAF, W64. An integer sample is
/// divided by 2^(bits-1). If the header gives more data than there is, as streaming writers do, the sound ends with the
/// data.
MOKA_EXPORT Sound decode_sound(std::span<const std::byte> bytes, std::string_view name = "sound");
MOKA_EXPORT Sound read_sound(const std::filesystem::path& path);

/// Whether files that end like this are read as sound: "wav", "flac", "ogg", "mp3", ...
MOKA_EXPORT bool is_sound(std::string_view extension);

/// The mean of the channels.
MOKA_EXPORT Sound mono(const Sound& sound);
/// Resamples every channel with libsoxr's high quality: no delay, flat to 0.91 of the lower Nyquist frequency. The
/// result has ceil(frames * rate / sample_rate) frames. Throws invalid_argument unless rates are 1 Hz to 10 MHz and
/// differ by a factor below 1000.
MOKA_EXPORT Sound resampled(const Sound& sound, uint32_t rate);

/// RIFF WAVE with PCM of 16 bits; samples outside [-1, 1] are clipped. Throws invalid_argument.
MOKA_EXPORT std::vector<std::byte> encode_wav(const Sound& sound);

// ---- Arrays ----

/// Decodes .npy: format versions 1 to 3, either byte order, C or Fortran order. Numbers give a MultiArray, texts along
/// one dimension a StringSequence. Structured, complex, object and date types are unsupported.
MOKA_EXPORT FeatureValue decode_npy(std::span<const std::byte> bytes, std::string_view name = "npy");
MOKA_EXPORT FeatureValue read_npy(const std::filesystem::path& path);
/// Decodes .npz: its arrays in the order of the archive, with names without ".npy". Skips members that are not .npy.
MOKA_EXPORT Features decode_npz(std::span<const std::byte> bytes, std::string_view name = "npz");
MOKA_EXPORT Features read_npz(const std::filesystem::path& path);

/// Version 1 (2 if the header is long) in C order, little-endian. Throws invalid_argument for an array without data.
MOKA_EXPORT std::vector<std::byte> encode_npy(const MultiArray& array);
/// Without compression, as numpy.savez. Throws invalid_argument for values that are not multi-arrays, and for 4 GiB.
MOKA_EXPORT std::vector<std::byte> encode_npz(const Features& arrays);

// ---- Values of features ----

/// What a file of raw video does not say.
struct RawFrame {
  int64_t width = 0, height = 0;
  std::optional<PixelBufferFormat> format;  ///< nullopt: by the end of the file's name: .nv12; .i420 and .yuv; .p010
  YCbCrMatrix matrix = YCbCrMatrix::bt601;  ///< also of .y4m
  std::string option_name = "a size";       ///< what messages call it
};

struct ReadingOptions {
  ImageFit fit = ImageFit::scale_fill;
  ImageRegion region;                 ///< of images
  RawFrame frame;                     ///< of raw video
  int64_t most_pixels = kMostPixels;  ///< of an image file
  uint32_t rate = 0;                  ///< sounds are resampled to it, in hertz; 0: the rate of the file
  bool pad = false;    ///< appends silence to sounds that are too short, and cuts the end of those that are too long
  std::string member;  ///< the array of an .npz file; empty: the one of the feature's name, or the only one
  std::string pad_name = "pad", rate_name = "rate";  ///< what messages call these options
  /// Receives what the user may want to know: that a sound was cut or silence was added.
  std::function<void(const std::string& text)> note;
};

/// The contents of a file as the value of a feature, as `moka predict --input NAME=@FILE` reads it. The end of the path
/// tells the kind:
///   images    .png .jpg .jpeg .webp as image_value; .npy and .npz as image_of_array; the first frame of .y4m (4:2:0, 8
///             bits) and of raw video (.nv12 .i420 .yuv .p010), as a PixelBuffer
///   arrays    .npy .npz .json .txt; sound is mixed to one channel, resampled, and padded or cut
///   numbers   .txt .json .npy
///   texts     .json with a string; any other file as it is
///   others    .json
/// Throws invalid_argument when the contents do not fit the feature.
MOKA_EXPORT FeatureValue read_feature(const FeatureDescription& feature, const std::filesystem::path& path,
                                      const ReadingOptions& options = {});
/// The same for the bytes of a file, whose kind is told by the first of them, and otherwise by the end of `name`, which
/// begins messages.
MOKA_EXPORT FeatureValue decode_feature(const FeatureDescription& feature, std::span<const std::byte> bytes,
                                        std::string_view name, const ReadingOptions& options = {});

/// A number, JSON, or numbers separated by commas or spaces as the value of a feature; a text as it is. Throws
/// invalid_argument.
MOKA_EXPORT FeatureValue value_of_text(const FeatureDescription& feature, std::string_view text);
/// Why a text is not JSON that a value can be read from, with line, column and reason; nullopt: it is.
MOKA_EXPORT std::optional<std::string> json_fault(std::string_view text);

}  // namespace moka
