// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "bindings.h"
#include "convert.h"
#include "draw/answer.h"
#include "interpreter.h"
#include "usage_error.h"
#include "values.h"

namespace moka::python {

namespace nb = nanobind;

namespace {

nb::object draw(const Model& model, nb::handle inputs, nb::handle outputs, nb::handle picture, const Reading& reading) {
  Borrowed borrowed;
  const FunctionDescription& function = model.function();
  const Features in = to_features(inputs, function.inputs, borrowed, &reading);
  const Features out = to_features(outputs, function.outputs, borrowed, &reading);
  io::Picture ground;
  if (!picture.is_none()) ground = cli::to_picture(to_image(picture, FeatureDescription{}, borrowed, nullptr));
  auto* drawn = new io::Picture;
  nb::capsule owner(drawn, [](void* p) noexcept { delete static_cast<io::Picture*>(p); });
  try {
    const Unlocked unlocked;
    *drawn = cli::drawn(model.description(), function, in, out, picture.is_none() ? nullptr : &ground,
                        io::parse_fit(reading.fit));
  } catch (const cli::UsageError& e) {
    raise(ErrorKind::invalid_argument, e.what());
  }
  return nb::cast(
      nb::ndarray<nb::numpy, uint8_t>(drawn->pixels.data(), {drawn->height, drawn->width, drawn->channels}, owner));
}

}  // namespace

void bind_draw(nb::module_& m) {
  m.def("draw", &draw, nb::arg("model"), nb::arg("inputs"), nb::arg("outputs"), nb::arg("picture").none(),
        nb::arg("reading"),
        nb::sig("def draw(model: Model, inputs: object, outputs: object, picture: object | None, reading: Reading)"
                " -> numpy.ndarray"));
}

}  // namespace moka::python
