#include "moka/plugin.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "api/api_util.h"
#include "moka/custom.h"

namespace moka::test {

namespace {

/// How many layers there are, and what the last one was told.
struct Seen {
  int alive = 0;
  std::string name, mode;
  double scale = 0;
};

struct Scaled {
  Seen* seen;
  double scale;
};

const char* create(void* context, const moka_layer_info* info, void** layer) {
  auto* seen = static_cast<Seen*>(context);
  seen->name = info->name;
  for (size_t i = 0; i < info->parameter_count; i++) {
    const moka_parameter& p = info->parameters[i];
    if (std::string(p.name) == "scale") seen->scale = p.number;
    if (std::string(p.name) == "mode") seen->mode = p.string;
  }
  if (seen->scale < 0) return "scale: expected 0 or more";
  seen->alive++;
  *layer = new Scaled{seen, seen->scale};
  return nullptr;
}

void destroy(void* layer) {
  auto* scaled = static_cast<Scaled*>(layer);
  scaled->seen->alive--;
  delete scaled;
}

const char* output_shapes(void*, size_t, const moka_shape* in, size_t, moka_shape* out) {
  out[0].rank = 1;
  out[0].sizes[0] = in[0].sizes[0] * in[0].sizes[1];
  return nullptr;
}

const char* evaluate(void* layer, const moka_layer_call* call) {
  const auto* x = static_cast<const float*>(call->inputs[0].data);
  auto* y = static_cast<float*>(call->outputs[0].data);
  if (call->inputs[0].rank != 2 || call->outputs[0].rank != 1) return "ranks";
  for (int64_t i = 0; i < call->outputs[0].shape[0]; i++)
    y[i] = static_cast<float>(static_cast<Scaled*>(layer)->scale) * x[i];
  return nullptr;
}

std::string scaled(const std::string& scale) {
  return program("tensor<fp32, [2, 2]> x",
                 " tensor<fp32, [4]> y = scaled(x = x, scale = fp32(" + scale +
                     "), mode = string(\"flat\"))[name = string(\"s\")];",
                 "y");
}

}  // namespace

TEST(Plugin, LayersInC) {
  Seen seen;
  moka_layer_type type{};
  type.struct_size = sizeof type;
  type.create = create;
  type.destroy = destroy;
  type.output_shapes = output_shapes;
  type.evaluate = evaluate;
  ASSERT_EQ(moka_register_operation("scaled", &type, &seen), MOKA_OK) << moka_last_error();
  {
    const Model model = Model::from_mil(scaled("2.5"));
    EXPECT_EQ(seen.alive, 1);
    EXPECT_EQ(seen.name, "s");
    EXPECT_EQ(seen.mode, "flat");
    const auto y = values(model.predict({{"x", MultiArray::of(std::vector<float>{1, 2, 3, 4}, {2, 2})}}).array("y"));
    EXPECT_EQ(y, (std::vector<double>{2.5, 5, 7.5, 10}));
  }
  EXPECT_EQ(seen.alive, 0);
  expect_error(ErrorKind::data, {"scaled", "scale: expected 0 or more"}, [] { Model::from_mil(scaled("-1")); });
  EXPECT_EQ(moka_unregister_operation("scaled"), MOKA_OK);
  EXPECT_EQ(moka_unregister_operation("scaled"), MOKA_NOT_FOUND);
}

TEST(Plugin, WrongRegistrationsAreRefused) {
  moka_layer_type type{};
  EXPECT_EQ(moka_register_layer("L", nullptr, nullptr), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_register_layer("L", &type, nullptr), MOKA_INVALID_ARGUMENT);
  type.struct_size = sizeof type;
  EXPECT_EQ(moka_register_layer("L", &type, nullptr), MOKA_INVALID_ARGUMENT);
  EXPECT_NE(std::string(moka_last_error()).find("evaluate"), std::string::npos);
  type.evaluate = evaluate;
  EXPECT_EQ(moka_register_layer(nullptr, &type, nullptr), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_register_operation("relu", &type, nullptr), MOKA_INVALID_ARGUMENT);
}

TEST(Plugin, SharedLibraries) {
  ASSERT_EQ(moka_load_plugin(MOKA_EXAMPLE_PLUGIN), MOKA_OK) << moka_last_error();
  const auto layers = registered_layers();
  EXPECT_NE(std::find(layers.begin(), layers.end(), "Swish"), layers.end());
  EXPECT_TRUE(unregister_layer("Swish"));
  EXPECT_EQ(moka_load_plugin("/nowhere/layers.so"), MOKA_NOT_FOUND);
  EXPECT_EQ(moka_load_plugin(nullptr), MOKA_INVALID_ARGUMENT);
  expect_error(ErrorKind::unsupported, {"moka_plugin"}, [] { load_plugin("/lib/x86_64-linux-gnu/libm.so.6"); });
}

}  // namespace moka::test
