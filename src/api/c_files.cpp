// SPDX-License-Identifier: Apache-2.0
#include "api/c_support.h"
#include "moka/files.h"
#include "moka/moka_files.h"

using namespace moka::api;
using moka::cat;

struct moka_picture {
  moka::Image image;
};

static_assert(MOKA_CENTER_CROP == static_cast<int>(moka::ImageFit::center_crop));

namespace {

moka::ImageFit fit_of(int fit) { return enumerator<moka::ImageFit>(fit, MOKA_CENTER_CROP + 1, "fit"); }

moka::ImageRegion region_of(const moka_image_region* region) {
  if (region == nullptr) return {};
  return {region->x, region->y, region->width, region->height};
}

int64_t most_pixels_of(int64_t given) {
  if (given < 0) wrong(cat("most_pixels: expected a number of pixels or 0, got ", given));
  return given == 0 ? moka::kMostPixels : given;
}

moka::Image borrowed_image(const moka_image& i) {
  return moka::Image(i.pixels, i.width, i.height, pixel_format_of(i.format), i.row_bytes);
}

/// A copy if the pixels belong to the caller, as the library returns an image itself when nothing changes.
moka_picture* owned(moka::Image image, const moka_image& given) {
  if (image.pixels.get() == given.pixels) {
    const moka::Image whole = std::move(image);
    image = moka::Image(whole.width, whole.height, whole.format);
    for (int64_t y = 0; y < image.height; y++)
      std::memcpy(image.pixels.get() + y * image.row_bytes, whole.pixels.get() + y * whole.row_bytes,
                  static_cast<size_t>(image.row_bytes));
  }
  return new moka_picture{std::move(image)};
}

std::span<const std::byte> bytes_of(const void* bytes, size_t size) {
  if (size > 0) need(static_cast<const std::byte*>(bytes), "bytes");
  return {static_cast<const std::byte*>(bytes), size};
}

moka::ReadingOptions options_of(const moka_reading_options* given) {
  const auto o = options_from<moka_reading_options>(given, MOKA_READING_OPTIONS_INIT, "options");
  moka::ReadingOptions out;
  out.fit = fit_of(o.fit);
  out.region = region_of(o.region);
  out.most_pixels = most_pixels_of(o.most_pixels);
  out.rate = o.rate;
  out.pad = o.pad != 0;
  if (o.member != nullptr) out.member = o.member;
  return out;
}

/// The model's input of this name, or its only one. Also what only a training takes, such as a label.
const moka::FeatureDescription& input_of(const moka_model& model, const char* name) {
  const std::vector<moka::FeatureDescription>& inputs = model.model.function().inputs;
  if (name == nullptr) {
    if (inputs.size() == 1) return inputs[0];
    wrong(cat("argument 'name': expected one of the ", inputs.size(), " inputs of the model, got NULL"));
  }
  std::string names;
  for (const moka::FeatureDescription& input : inputs) {
    if (input.name == name) return input;
    names += cat(names.empty() ? "'" : ", '", input.name, "'");
  }
  if (const auto& update = model.model.description().update)
    for (const moka::FeatureDescription& input : update->training_inputs)
      if (input.name == name) return input;
  throw moka::Exception(moka::ErrorKind::not_found, cat("the model has no input '", name, "'; it takes ", names));
}

/// Sets the input to what `read` gives for its description.
template <class Read>
moka_status set_from(moka_features* features, const moka_model* model, const char* name, const Read& read) {
  return guarded([&] {
    moka_features& to = need(features, "features");
    const moka::FeatureDescription& input = input_of(need(model, "model"), name);
    to.values[input.name] = read(input);
    to.views.erase(input.name);
  });
}

}  // namespace

extern "C" {

moka_status moka_picture_read(const char* path, int64_t most_pixels, moka_picture** picture) {
  return guarded([&] {
    need(picture, "picture");
    *picture = new moka_picture{moka::read_image(need_text(path, "path"), most_pixels_of(most_pixels))};
  });
}

moka_status moka_picture_decode(const void* bytes, size_t size, const char* name, int64_t most_pixels,
                                moka_picture** picture) {
  return guarded([&] {
    need(picture, "picture");
    *picture =
        new moka_picture{moka::decode_image(bytes_of(bytes, size), name ? name : "image", most_pixels_of(most_pixels))};
  });
}

moka_status moka_picture_fit(const moka_image* image, int64_t width, int64_t height, moka_image_fit fit,
                             const moka_image_region* region, moka_picture** picture) {
  return guarded([&] {
    need(picture, "picture");
    const moka::Image given = borrowed_image(need(image, "image"));
    *picture = owned(moka::fit_image(given, width, height, fit_of(fit), region_of(region)), *image);
  });
}

moka_status moka_picture_convert(const moka_image* image, moka_pixel_format format, moka_picture** picture) {
  return guarded([&] {
    need(picture, "picture");
    const moka::Image given = borrowed_image(need(image, "image"));
    const auto to = pixel_format_of(format);
    *picture = owned(moka::converted(given, to), *image);
  });
}

moka_status moka_picture_convert_pixel_buffer(const moka_pixel_buffer* buffer, moka_pixel_format format,
                                              moka_picture** picture) {
  return guarded([&] {
    need(picture, "picture");
    *picture = new moka_picture{moka::image_of(borrowed_pixel_buffer(buffer), pixel_format_of(format))};
  });
}

moka_status moka_picture_fit_pixel_buffer(const moka_pixel_buffer* buffer, int64_t width, int64_t height,
                                          moka_pixel_format format, moka_picture** picture) {
  return guarded([&] {
    need(picture, "picture");
    *picture = new moka_picture{moka::fitted(borrowed_pixel_buffer(buffer), width, height, pixel_format_of(format))};
  });
}

moka_status moka_picture_image(const moka_picture* picture, moka_image* image) {
  return guarded([&] {
    const moka::Image& i = need(picture, "picture").image;
    need(image, "image") = {i.pixels.get(), i.width, i.height, i.row_bytes, static_cast<moka_pixel_format>(i.format)};
  });
}

void moka_picture_free(moka_picture* picture) { delete picture; }

moka_status moka_features_read_file(moka_features* features, const moka_model* model, const char* name,
                                    const char* path, const moka_reading_options* options) {
  return set_from(features, model, name, [&](const moka::FeatureDescription& input) {
    return moka::read_feature(input, need_text(path, "path"), options_of(options));
  });
}

moka_status moka_features_read_bytes(moka_features* features, const moka_model* model, const char* name,
                                     const void* bytes, size_t size, const char* file_name,
                                     const moka_reading_options* options) {
  return set_from(features, model, name, [&](const moka::FeatureDescription& input) {
    return moka::decode_feature(input, bytes_of(bytes, size), file_name ? file_name : "bytes", options_of(options));
  });
}

}  // extern "C"
