// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "format/proto/model.pb.h"
#include "import_nn/nn_util.h"

namespace moka::test {

/// A network of exact array mapping under construction.
struct Net {
  using Layer = proto::NeuralNetworkLayer;

  proto::Model model;
  std::map<std::string, ir::Shape> shapes;

  Net() {
    model.set_specificationversion(4);
    model.mutable_neuralnetwork()->set_arrayinputshapemapping(proto::EXACT_ARRAY_MAPPING);
  }
  void input(const std::string& name, const ir::Shape& shape) {
    auto* f = model.mutable_description()->add_input();
    f->set_name(name);
    f->mutable_type()->mutable_multiarraytype()->set_datatype(proto::ArrayFeatureType::FLOAT32);
    shapes[name] = shape;
  }
  Layer* layer(const std::string& name, std::initializer_list<const char*> in, std::initializer_list<const char*> out) {
    return add(*model.mutable_neuralnetwork()->mutable_layers(), name, in, out);
  }
  static Layer* add(google::protobuf::RepeatedPtrField<Layer>& to, const std::string& name,
                    std::initializer_list<const char*> in, std::initializer_list<const char*> out) {
    Layer* l = to.Add();
    l->set_name(name);
    for (const char* i : in) l->add_input(i);
    for (const char* o : out) l->add_output(o);
    return l;
  }
  Result<Network> import(const char* output = nullptr) {
    if (output != nullptr) {
      auto* f = model.mutable_description()->add_output();
      f->set_name(output);
      f->mutable_type()->mutable_multiarraytype()->set_datatype(proto::ArrayFeatureType::FLOAT32);
    }
    auto file = MOKA_TRY(format::open_model_bytes(Bytes::from(model.SerializeAsString()), {}));
    return import_network(file, shapes);
  }
  void expect_refused(ErrorCode code, const std::string& message, const char* output = nullptr) {
    auto network = import(output);
    ASSERT_FALSE(network.ok());
    EXPECT_EQ(network.error().code(), code);
    EXPECT_NE(network.error().to_string().find(message), std::string::npos) << network.error().to_string();
  }
};

}  // namespace moka::test
