#include "api/api_util.h"
#include "models_folder.h"

namespace moka::test {
namespace {

/// What explain accounts for, with weights that are packed and with weights that stay in the file.
TEST(Memory, LowMemoryPacksLess) {
  MOKA_NEEDS_MODELS(folder);
  const std::string path = (*folder / "superres/anime_noise1_model.mlmodel").string();
  ModelConfiguration c;
  c.threads = 1;
  const Model plain = Model::load(path, c);
  c.low_memory = true;
  const Model low = Model::load(path, c);
  const Features in = random_inputs(plain.function(), 3);
  const Features expected = plain.predict(in), got = low.predict(in);
  const MultiArray &a = expected.array("conv7"), &b = got.array("conv7");
  ASSERT_EQ(a.count(), b.count());
  for (int64_t i = 0; i < a.count(); i++) ASSERT_NEAR(a.at(i), b.at(i), 1e-4) << i;
  const MemoryUse more = plain.compute_plan(in).memory, less = low.compute_plan(in).memory;
  EXPECT_GT(more.packed, size_t{4} << 20);
  EXPECT_LT(less.packed, size_t{256} << 10);
  for (const MemoryUse& m : {more, less}) {
    EXPECT_GT(m.arenas, 0u);
    EXPECT_GT(m.heap, 0u);
    EXPECT_EQ(m.total(), m.mapped + m.packed + m.constants + m.arenas + m.heap);
  }
}

}  // namespace
}  // namespace moka::test
