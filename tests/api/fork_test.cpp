// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "api/api_util.h"
#include "moka/program.h"

namespace moka {
namespace {

/// Large enough to be spread over threads.
Model convolution() {
  ProgramBuilder b;
  auto x = b.input("x", DataType::float32, {1, 16, 64, 64});
  MultiArray w(DataType::float32, {32, 16, 3, 3});
  for (size_t i = 0; i < w.as<float>().size(); i++) w.as<float>()[i] = static_cast<float>(i % 7) * 0.1f - 0.3f;
  auto y = b.op("conv", {{"x", x}, {"weight", w}, {"pad_type", "same"}}, "c");
  b.output(b.op("softmax", {{"x", b.op("exp", {{"x", y}}, "e")}, {"axis", 1}}, "y"));
  ModelConfiguration c;
  c.threads = 2;
  return b.build(c);
}

/// Forks and returns whether `work` was true in the child, which may take a minute before it counts as hanging.
template <class F>
bool in_child(F&& work) {
  pid_t pid = fork();
  if (pid == 0) {
    alarm(60);
    _exit(work() ? 0 : 1);
  }
  int status = 0;
  return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Fork, TheChildPredictsAndLoads) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer ends a forked child that starts threads";
#endif
  Model model = convolution();
  Features inputs = random_inputs(model.function());
  const Features outputs = model.predict(inputs);
  const MultiArray& expected = outputs.array("y");
  auto same = [&](const Model& m) {
    Features got = m.predict(inputs);
    return std::memcmp(got.array("y").data(), expected.data(), static_cast<size_t>(expected.count()) * 4) == 0;
  };
  EXPECT_TRUE(in_child([&] { return same(model) && same(model); })) << "a model of the parent";
  EXPECT_TRUE(in_child([&] { return same(convolution()); })) << "a model loaded by the child";
  EXPECT_TRUE(in_child([&] { return in_child([&] { return same(model); }) && same(model); })) << "a child of the child";
  EXPECT_TRUE(same(model)) << "the parent afterwards";
}

}  // namespace
}  // namespace moka
