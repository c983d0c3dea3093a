// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "c_api/owned.h"
#include "moka/moka.h"

namespace {

TEST(CWarnings, GoToTheHandler) {
  std::vector<std::string> heard;
  const auto hear = [](void* context, const char* text) {
    static_cast<std::vector<std::string>*>(context)->push_back(text);
  };
  moka_configuration c = MOKA_CONFIGURATION_INIT;
  c.pins = "type:heard_in_c=cpu";
  const char program[] =
      "program(1.0)\n{\n  func main<ios15>(tensor<fp32, [2]> x) {\n"
      "    tensor<fp32, [2]> y = relu(x = x)[name = tensor<string, []>(\"y\")];\n  } -> (y);\n}";
  moka_model* m = nullptr;
  ASSERT_EQ(moka_set_warning_handler(hear, &heard), MOKA_OK);
  const moka_status status = moka_model_load_mil(program, &c, &m);
  ASSERT_EQ(moka_set_warning_handler(nullptr, nullptr), MOKA_OK);
  ASSERT_EQ(status, MOKA_OK) << moka_last_error();
  const moka::test::Owner<moka_model> model(m);
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_NE(heard[0].find("type:heard_in_c=cpu"), std::string::npos) << heard[0];
}

}  // namespace
