// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/profiler.h"

#include <collet/collet.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sdk/pjrt/wire.h"

namespace collet::pjrt {
namespace {

const PLUGIN_Profiler_Api& api() {
  return *reinterpret_cast<PJRT_Profiler_Extension*>(profiler_extension(nullptr))->profiler_api;
}

PLUGIN_Profiler* make() {
  PLUGIN_Profiler_Create_Args args{sizeof args, nullptr, 0, nullptr};
  EXPECT_EQ(api().create(&args), nullptr);
  return args.profiler;
}

std::string message_of(PLUGIN_Profiler_Error* error) {
  if (!error) return "";
  PLUGIN_Profiler_Error_Message_Args message{sizeof message, nullptr, error, nullptr, 0};
  api().error_message(&message);
  const std::string text(message.message, message.message_size);
  PLUGIN_Profiler_Error_Destroy_Args destroy{sizeof destroy, nullptr, error};
  api().error_destroy(&destroy);
  return text;
}

std::string call(PLUGIN_Profiler_Error* (*function)(PLUGIN_Profiler_Args*), PLUGIN_Profiler* profiler) {
  PLUGIN_Profiler_Args args{sizeof args, profiler};
  return message_of(function(&args));
}

// Returns the values of field `field` in a message.
std::vector<std::string> fields(std::string_view message, uint32_t field) {
  std::vector<std::string> out;
  WireReader reader(message);
  while (reader.next())
    if (reader.field() == field) out.emplace_back(reader.bytes());
  EXPECT_TRUE(reader.ok());
  return out;
}

// Compiles and runs a program without arguments.
void run_a_program() {
  collet_client_options where{};
  where.struct_size = sizeof where;
  where.backend = "interpreter";
  collet_client* client = nullptr;
  collet_error error{};
  ASSERT_EQ(collet_client_open(&where, &client, &error), COLLET_OK) << error.message;
  const std::string text = "HloModule counting\nENTRY e { ROOT i = s32[4] iota(), iota_dimension=0 }";
  collet_module* module = nullptr;
  ASSERT_EQ(collet_module_read(text.data(), text.size(), nullptr, &module, nullptr, &error), COLLET_OK)
      << error.message;
  collet_compile_request request{};
  request.struct_size = sizeof request;
  collet_executable* program = nullptr;
  ASSERT_EQ(collet_compile(client, module, &request, &program, &error), COLLET_OK) << error.message;
  collet_execute_options options{};
  options.struct_size = sizeof options;
  options.synchronous = 1;
  collet_buffer* result = nullptr;
  ASSERT_EQ(collet_execute(program, &options, nullptr, &result, &error), COLLET_OK) << error.message;
  collet_buffer_release(result);
  collet_executable_release(program);
  collet_module_release(module);
  collet_client_close(client);
}

TEST(Profiler, GathersOnePlaneForADevice) {
  PLUGIN_Profiler* profiler = make();
  EXPECT_EQ(call(api().start, profiler), "");
  PLUGIN_Profiler* other = make();
  EXPECT_EQ(call(api().start, other), "another profiler session is running");
  run_a_program();
  PLUGIN_Profiler_CollectData_Args args{sizeof args, profiler, nullptr, 0};
  EXPECT_EQ(message_of(api().collect_data(&args)), "the profiler session is still running");
  EXPECT_EQ(call(api().stop, profiler), "");
  run_a_program();
  ASSERT_EQ(message_of(api().collect_data(&args)), "");

  const std::string space(reinterpret_cast<const char*>(args.buffer), args.buffer_size_in_bytes);
  size_t runs = 0;
  bool named = false;
  for (const std::string& plane : fields(space, 1)) {
    if (fields(plane, 2) != std::vector<std::string>{"/device:CUSTOM:Collet 0"}) continue;
    for (const std::string& line : fields(plane, 3))
      if (fields(line, 2)[0] == "XLA Modules") runs += fields(line, 4).size();
    for (const std::string& entry : fields(plane, 4)) named |= fields(fields(entry, 2)[0], 2)[0] == "counting";
  }
  EXPECT_EQ(runs, 1u) << "what ran while the session did";
  EXPECT_TRUE(named);
  EXPECT_EQ(call(api().start, other), "") << "the first one has ended";
  EXPECT_EQ(call(api().destroy, other), "");
  EXPECT_EQ(call(api().destroy, profiler), "");
}

}  // namespace
}  // namespace collet::pjrt
