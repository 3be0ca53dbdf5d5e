// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <collet/collet.hpp>

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Runs the example in the header comment of collet.hpp.
TEST(Wrapper, RunsAProgram) {
  auto client = collet::Client::open("interpreter");
  ASSERT_TRUE(client) << client.error().message;
  auto module =
      collet::Module::read("HloModule m\nENTRY e {\n  x = f32[2,3] parameter(0)\n  ROOT y = f32[2,3] add(x, x)\n}");
  ASSERT_TRUE(module) << module.error().message;
  EXPECT_EQ(module->parameter_count(), 1u);
  auto executable = client->compile(*module);
  ASSERT_TRUE(executable) << executable.error().message;
  const float data[] = {1, 2, 3, 4, 5, 6};
  auto x = client->upload<float>({2, 3}, data);
  ASSERT_TRUE(x) << x.error().message;
  auto results = executable->run({*x});
  ASSERT_TRUE(results) << results.error().message;
  EXPECT_TRUE((*results)[0].ready().wait());
  auto numbers = (*results)[0].to_vector<float>();
  ASSERT_TRUE(numbers) << numbers.error().message;
  EXPECT_THAT(*numbers, ElementsAre(2, 4, 6, 8, 10, 12));
  EXPECT_FALSE((*results)[0].to_vector<int32_t>());
  EXPECT_FALSE(executable->run({}));
  EXPECT_THAT(executable->explain(), HasSubstr("add"));
}

TEST(Wrapper, ReadsTruthValues) {
  auto client = collet::Client::open("interpreter");
  ASSERT_TRUE(client) << client.error().message;
  auto module =
      collet::Module::read("HloModule m\nENTRY e {\n  x = pred[3] parameter(0)\n  ROOT y = pred[3] not(x)\n}");
  ASSERT_TRUE(module) << module.error().message;
  auto executable = client->compile(*module);
  ASSERT_TRUE(executable) << executable.error().message;
  const bool data[] = {true, false, true};
  auto x = client->upload<bool>({3}, data);
  ASSERT_TRUE(x) << x.error().message;
  auto results = executable->run({*x});
  ASSERT_TRUE(results) << results.error().message;
  auto values = (*results)[0].to_vector<bool>();
  ASSERT_TRUE(values) << values.error().message;
  EXPECT_THAT(*values, ElementsAre(false, true, false));
  EXPECT_FALSE((*results)[0].to_vector<uint8_t>());
}

TEST(Wrapper, TellsWhatFailed) {
  const auto client = collet::Client::open("nonesuch");
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code, COLLET_NOT_FOUND);
  const auto module = collet::Module::read("HloModule m\nENTRY e {", "file.hlo");
  ASSERT_FALSE(module);
  EXPECT_THAT(module.error().message, HasSubstr("file.hlo:2:"));
}

}  // namespace
