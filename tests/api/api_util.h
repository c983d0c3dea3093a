// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>

#include "moka/model.h"

namespace moka::test {

/// Checks that `act` throws an Exception of this kind whose message contains every one of `parts`.
template <class Act>
void expect_error(ErrorKind kind, std::initializer_list<const char*> parts, Act act) {
  try {
    act();
    ADD_FAILURE() << "expected an error";
  } catch (const Exception& e) {
    EXPECT_EQ(static_cast<int>(e.kind()), static_cast<int>(kind)) << e.what();
    for (const char* part : parts)
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << "'" << part << "' is not in: " << e.what();
  }
}

/// float32 numbers that go from -3 to 3 steps, again and again.
inline MultiArray counted(const std::vector<int64_t>& shape, float step = 0.1f) {
  MultiArray out(DataType::float32, shape);
  for (int64_t i = 0; i < out.count(); ++i)
    out.as<float>()[static_cast<size_t>(i)] = step * static_cast<float>(i % 7 - 3);
  return out;
}

/// float32 numbers of a normal distribution, the same ones for the same seed.
inline MultiArray random_array(const std::vector<int64_t>& shape, uint32_t seed, float scale = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  MultiArray out(DataType::float32, shape);
  for (float& v : out.as<float>()) v = scale * normal(random);
  return out;
}

/// Both models give the same bits for the same random inputs. All outputs are float32.
inline void expect_same_bits(const Model& a, const Model& b) {
  const Features inputs = random_inputs(a.function(), 3), x = a.predict(inputs), y = b.predict(inputs);
  for (const FeatureDescription& f : a.function().outputs) {
    const MultiArray p = x.array(f.name), q = y.array(f.name);
    ASSERT_EQ(p.count(), q.count());
    EXPECT_EQ(std::memcmp(p.data(), q.data(), static_cast<size_t>(p.count()) * sizeof(float)), 0) << f.name;
  }
}

inline std::vector<double> values(const MultiArray& a) {
  std::vector<double> v;
  for (int64_t i = 0; i < a.count(); i++) v.push_back(a.at(i));
  return v;
}

/// A program of one function `main` with opset ios18.
inline std::string program(const std::string& inputs, const std::string& body, const std::string& outputs) {
  return "program(1.0)\n{\n func main<ios18>(" + inputs + ") {\n" + body + "\n } -> (" + outputs + ");\n}\n";
}

}  // namespace moka::test
