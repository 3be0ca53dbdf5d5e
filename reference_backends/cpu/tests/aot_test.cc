// SPDX-License-Identifier: Apache-2.0
#include <collet/tables.h>

#include <array>

#include "reference_backends/cpu/tests/plugin.h"

// Tests that serialized executables can be loaded, also in another instance, and that damaged ones and those for other
// processors are refused.

namespace collet::cpu::testing {
namespace {

const collet_aot_table* aot_of(Plugin& plugin) {
  return static_cast<const collet_aot_table*>(plugin.table->query(plugin.instance, "aot", 1));
}

class AotTest : public ::testing::Test {
 protected:
  AotTest() {
    static constexpr uint32_t device = 0;
    options_.struct_size = sizeof options_;
    options_.assignment = &device;
    options_.participants = 1;
    ProgramBuilder b;
    const Handle x = b.entry().argument(kF32, {1000});
    // The body looks up a table, so that the code contains constant data.
    RegionBuilder& body = b.region();
    const Handle at = body.op(COLLET_OP_CONVERT, COLLET_TYPE_S32, {}, {body.argument(kF32)});
    const float table[] = {3, 1, 4, 1, 5};
    const Handle found =
        body.op(COLLET_OP_DYNAMIC_SLICE, kF32, {1}, {body.constant(kF32, {5}, std::span<const float>(table)), at},
                collet_dynamic_slice_attrs{b.list({1})});
    body.results({body.reshape(found, {})});
    const Handle y = b.entry().op(COLLET_OP_MAP, kF32, {1000}, {x}, {&body});
    b.entry().results({b.entry().binary(COLLET_OP_ADD, y, b.entry().unary(COLLET_OP_TANH, x))});
    const collet_program* program = b.finish();
    Plugin plugin;
    collet_backend_executable* executable = nullptr;
    collet_executable_info info{};
    info.struct_size = sizeof info;
    EXPECT_EQ(plugin.table->compile(plugin.instance, program, &options_, &executable, &info, nullptr, &error_),
              COLLET_OK);
    uint64_t size = 0;
    const collet_aot_table* aot = aot_of(plugin);
    EXPECT_EQ(aot->serialize(executable, nullptr, 0, &size, &error_), COLLET_OK);
    bytes_.resize(size);
    EXPECT_EQ(aot->serialize(executable, bytes_.data(), size, &size, &error_), COLLET_OK);
    EXPECT_EQ(size, bytes_.size());
    kernels_ = info.kernels;
    plugin.table->release(executable);
  }

  collet_status load(Plugin& plugin, const Bytes& bytes) {
    collet_executable_info info{};
    info.struct_size = sizeof info;
    collet_backend_executable* executable = nullptr;
    const collet_status code =
        aot_of(plugin)->load(plugin.instance, bytes.data(), bytes.size(), &options_, &executable, &info, &error_);
    if (code == COLLET_OK) {
      EXPECT_EQ(info.kernels, kernels_);
      plugin.table->release(executable);
    }
    return code;
  }

  collet_compile_options options_{};
  collet_error error_{};
  Bytes bytes_;
  uint32_t kernels_ = 0;
};

TEST_F(AotTest, ComesBackInAnotherInstance) {
  Plugin plugin;
  EXPECT_EQ(load(plugin, bytes_), COLLET_OK) << error_.message;
}

TEST_F(AotTest, AnotherProcessorsIsRefused) {
  for (const auto& [features, threads, fuse] :
       {std::array{kLesser, "2", "1"}, std::array{"", "1", "1"}, std::array{"", "2", "0"}}) {
    if (!features) continue;
    Plugin other(features, threads, fuse);
    EXPECT_EQ(load(other, bytes_), COLLET_FAILED_PRECONDITION) << features << threads << fuse;
  }
}

TEST_F(AotTest, DamageIsTold) {
  Plugin plugin;
  for (size_t n = 0; n < bytes_.size(); n += 1 + n / 16)
    EXPECT_EQ(load(plugin, Bytes(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(n))), COLLET_DATA_LOSS);
  for (size_t i = 0; i < bytes_.size(); i += 7) {
    Bytes bytes = bytes_;
    bytes[i] = static_cast<char>(bytes[i] ^ 1 << i % 8);
    EXPECT_EQ(load(plugin, bytes), COLLET_DATA_LOSS) << "byte " << i;
  }
}

}  // namespace
}  // namespace collet::cpu::testing
