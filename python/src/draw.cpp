// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>

#include "bindings.h"
#include "interpreter.h"
#include "values.h"

namespace moka::python {

namespace nb = nanobind;

namespace {

nb::object draw(const Model& model, nb::handle inputs, nb::handle outputs, nb::handle picture, const Reading& reading) {
  Borrowed borrowed;
  const FunctionDescription& function = model.function();
  const Features in = to_features(inputs, function.inputs, borrowed, &reading);
  const Features out = to_features(outputs, function.outputs, borrowed, &reading);
  std::optional<Image> ground;
  if (!picture.is_none()) ground = to_image(picture, FeatureDescription{}, borrowed, nullptr);
  std::optional<Drawing> drawing;
  {
    const Unlocked unlocked;
    drawing = draw_outputs(model.description(), function, in, out, ground ? &*ground : nullptr, image_fit(reading.fit));
  }
  if (!drawing)
    raise(ErrorKind::invalid_argument,
          "no output can be drawn (classes, boxes, key points, masks, maps and images can)");
  return pixels_of(drawing->image);
}

}  // namespace

void bind_draw(nb::module_& m) {
  m.def("draw", &draw, nb::arg("model"), nb::arg("inputs"), nb::arg("outputs"), nb::arg("picture").none(),
        nb::arg("reading"),
        nb::sig("def draw(model: Model, inputs: object, outputs: object, picture: object | None, reading: Reading)"
                " -> numpy.ndarray"));
}

}  // namespace moka::python
