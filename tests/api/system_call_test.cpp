// SPDX-License-Identifier: Apache-2.0
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "api/api_util.h"
#include "moka/program.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

/// Steady predictions make no system calls except to let threads wait. The test runs in a child process that any other
/// call terminates.
namespace moka::test {
namespace {

std::string constant(const std::string& name, int rows, int columns) {
  const std::string type = "tensor<fp32, [" + std::to_string(rows) + ", " + std::to_string(columns) + "]>";
  std::string text = type + " " + name + " = const()[val = " + type + "(";
  for (int i = 0; i < rows * columns; i++)
    text += (i == 0 ? "[[" : i % columns == 0 ? "], [" : ", ") + std::to_string((i % 41 - 20) / 256.0);
  return text + "]])];\n";
}

/// Convolutions of several kinds, attention, a recurrent layer and products.
std::string everything() {
  return program("tensor<fp32, [1, 3, 96, 96]> x",
                 constant("w5", 64, 64) + constant("w6", 64, 16) + constant("w7", 100, 16) + R"(
    tensor<fp32, [32, 3, 3, 3]> w1 = fill(shape = tensor<int32, [4]>([32, 3, 3, 3]), value = fp32(0.03));
    tensor<fp32, [64, 32, 3, 3]> w2 = fill(shape = tensor<int32, [4]>([64, 32, 3, 3]), value = fp32(0.003));
    tensor<fp32, [64, 1, 3, 3]> w3 = fill(shape = tensor<int32, [4]>([64, 1, 3, 3]), value = fp32(0.1));
    tensor<fp32, [64, 64, 1, 1]> w4 = fill(shape = tensor<int32, [4]>([64, 64, 1, 1]), value = fp32(0.01));
    tensor<fp32, [1, 16]> h0 = fill(shape = tensor<int32, [2]>([1, 16]), value = fp32(0.1));
    tensor<fp32, [1, 32, 48, 48]> a = conv(x = x, weight = w1, strides = tensor<int32, [2]>([2, 2]), pad_type = string("same"));
    tensor<fp32, [1, 32, 48, 48]> b = relu(x = a);
    tensor<fp32, [1, 64, 48, 48]> c = conv(x = b, weight = w2, pad_type = string("same"));
    tensor<fp32, [1, 64, 24, 24]> d = conv(x = c, weight = w3, strides = tensor<int32, [2]>([2, 2]), pad_type = string("same"), groups = int32(64));
    tensor<fp32, [1, 64, 24, 24]> e = conv(x = d, weight = w4);
    tensor<fp32, [1, 4, 16, 576]> f = reshape(x = e, shape = tensor<int32, [4]>([1, 4, 16, 576]));
    tensor<fp32, [1, 4, 576, 16]> g = transpose(x = f, perm = tensor<int32, [4]>([0, 1, 3, 2]));
    tensor<fp32, [1, 4, 576, 16]> h = scaled_dot_product_attention(query = g, key = g, value = g);
    tensor<fp32, [576, 1, 64]> i = reshape(x = h, shape = tensor<int32, [3]>([576, 1, 64]));
    tensor<fp32, [576, 1, 16]> j, tensor<fp32, [1, 16]> jh, tensor<fp32, [1, 16]> jc = lstm(x = i, initial_h = h0, initial_c = h0, weight_ih = w5, weight_hh = w6, output_sequence = bool(true));
    tensor<fp32, [576, 1, 100]> k = linear(x = j, weight = w7);
    tensor<fp32, [576, 1, 100]> y = softmax(x = k, axis = int32(-1));
)",
                 "y");
}

void say(int, siginfo_t* info, void*) {
  char text[] = "system call 0000\n";
  for (int i = 15, n = info->si_syscall; i > 11; i--, n /= 10) text[i] = static_cast<char>('0' + n % 10);
  if (write(2, text, sizeof(text) - 1) < 0) _exit(3);
  _exit(1);
}

/// Forbids the process every system call except write and exit_group. With several threads, a thread may also wait,
/// wake others and set its CPU affinity. Returns false if the system does not support this.
bool forbid_calls(int threads) {
  struct sigaction action = {};
  action.sa_sigaction = say;
  action.sa_flags = SA_SIGINFO;
  if (sigaction(SIGSYS, &action, nullptr) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  const bool several = threads > 1;
  const auto if_several = [several](uint32_t call) { return several ? call : uint32_t{__NR_write}; };
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, if_several(__NR_futex), 6, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, if_several(__NR_sched_yield), 5, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, if_several(__NR_sched_getaffinity), 4, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, if_several(__NR_sched_setaffinity), 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_write, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_exit_group, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog all{std::size(filter), filter};
  return syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &all) == 0;
}

[[noreturn]] void predict_quietly(int threads) {
  // oneDNN allocates at run time (allocation_test.cpp separates its allocations from ours), so glibc must keep freed
  // memory.
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 64 << 20);
  ModelConfiguration c;
  c.threads = threads;
  const Model m = Model::from_mil(everything(), c);
  const Features in = random_inputs(m.function());
  Features out;
  for (int i = 0; i < 10; i++) m.predict(in, out);
  if (!forbid_calls(threads)) _exit(2);
  for (int i = 0; i < 20; i++) m.predict(in, out);
  _exit(0);
}

bool can_forbid() {
  unsigned action = SECCOMP_RET_TRAP;
  return syscall(__NR_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

class SystemCalls : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!can_forbid()) GTEST_SKIP() << "this system has no seccomp";
    // The child starts with its own threads.
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
  }
};

TEST_P(SystemCalls, NoneOfSteadyPredictions) {
  EXPECT_EXIT(predict_quietly(GetParam()), testing::ExitedWithCode(0), "");
}

INSTANTIATE_TEST_SUITE_P(Threads, SystemCalls, testing::Values(1, 2));

TEST(SystemCallsThemselves, AreNoticed) {
  if (!can_forbid()) GTEST_SKIP() << "this system has no seccomp";
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        if (!forbid_calls(1)) _exit(2);
        _exit(getppid() == 0);
      },
      testing::ExitedWithCode(1), "system call");
}

}  // namespace
}  // namespace moka::test

#endif
