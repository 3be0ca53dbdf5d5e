// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/tensorflow/package.h"

#include <collet/dynamic_library.hpp>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

namespace collet::tensorflow {
namespace {

/// The table that TensorFlow gets. After the known functions there are zeros: some callers do not check the size.
struct Table {
  PJRT_Api api;
  void* nothing[64];
};

Table table{};
const PJRT_Api* library_api = nullptr;
PJRT_Client* client = nullptr;
std::string client_error;

PJRT_Error* create_client(PJRT_Client_Create_Args* args) {
  std::vector<PJRT_NamedValue> options(args->create_options, args->create_options + args->num_options);
  for (const auto& [name, value] : Package::get().options()) {
    PJRT_NamedValue option{};
    option.struct_size = sizeof option;
    option.name = name.data();
    option.name_size = name.size();
    option.type = PJRT_NamedValue_kString;
    option.string_value = value.data();
    option.value_size = value.size();
    options.push_back(option);
  }
  PJRT_Client_Create_Args own = *args;
  own.create_options = options.data();
  own.num_options = options.size();
  PJRT_Error* const error = library_api->PJRT_Client_Create(&own);
  args->client = own.client;
  client = error ? nullptr : own.client;
  client_error = error ? message_of(error) : "";
  return error;
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

}  // namespace

PJRT_Client* created_client() {
  return client;
}

const std::string& creation_error() {
  return client_error;
}

std::string message_of(PJRT_Error* error) {
  PJRT_Error_Message_Args args{};
  args.struct_size = sizeof args;
  args.error = error;
  library_api->PJRT_Error_Message(&args);
  return {args.message, args.message_size};
}

const PJRT_Api* Package::api() const {
  return error_.empty() ? &table.api : nullptr;
}

const Package& Package::get() {
  static const Package package;
  return package;
}

Package::Package() {
  error_ = load();
}

std::string Package::read_settings(const std::string& path) {
  std::ifstream file(path);
  if (!file) return "cannot read " + path;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.empty()) continue;
    const size_t equals = line.find('=');
    if (equals == 0 || equals == std::string::npos)
      return path + ":" + std::to_string(number) + ": this is not NAME=VALUE";
    options_[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return "";
}

std::string Package::load() {
  namespace fs = std::filesystem;
  Dl_info info{};
  if (!dladdr(reinterpret_cast<const void*>(&Package::get), &info) || !info.dli_fname)
    return "cannot find the path of the plugin";
  std::error_code ignored;
  const fs::path self = fs::absolute(info.dli_fname, ignored);
  std::string name = self.stem().string();
  if (name.starts_with("lib")) name.erase(0, 3);
  const fs::path folder = self.parent_path().parent_path() / name;
  fs::path library = self.parent_path() / "libcollet_pjrt.so";
  if (fs::is_directory(folder, ignored)) {
    if (std::string error = read_settings((folder / "settings.txt").string()); !error.empty()) return error;
    library = folder / "lib" / "libcollet_pjrt.so";
    if (const auto it = options_.find("backend"); it != options_.end())
      it->second = (folder / "lib" / "collet" / "backends" / it->second).string();
  }
  if (const char* const asked = std::getenv("COLLET_PJRT_LIBRARY"); asked && *asked) library = asked;
  if (const char* const asked = std::getenv("COLLET_PLATFORM_NAME"); asked && *asked) options_["platform_name"] = asked;
  if (const auto it = options_.find("platform_name"); it != options_.end()) device_type_ = upper(it->second);

  // TensorFlow takes the dimensions of a result for its size.
  options_["data_dependent_sizes"] = "real";

  void* const handle = dlopen(library.c_str(), private_library());
  if (!handle) return std::string("cannot load the PJRT library: ") + dlerror();
  void* const symbol = dlsym(handle, "GetPjrtApi");
  if (!symbol) return library.string() + " does not export GetPjrtApi";
  const PJRT_Api* (*get_api)() = nullptr;
  std::memcpy(&get_api, &symbol, sizeof get_api);
  library_api = get_api();
  if (!library_api) return library.string() + " has no PJRT table";
  std::memcpy(&table.api, library_api, std::min(library_api->struct_size, sizeof table.api));
  table.api.PJRT_Client_Create = create_client;
  return "";
}

}  // namespace collet::tensorflow
