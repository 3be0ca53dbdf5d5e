/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_COLLET_HPP
#define COLLET_COLLET_HPP

/** \file
 * C++17 wrapper of collet.h: classes that own references instead of handles, and Result instead of status codes. Header
 * only; it throws no exceptions of its own.
 *
 *     auto client = collet::Client::open("cpu");
 *     auto module = collet::Module::read(text);
 *     if (!client || !module) return report(client ? module.error() : client.error());
 *     auto executable = client->compile(*module);
 *     auto x = client->upload<float>({2, 3}, data);
 *     auto results = executable->run({*x});
 *     auto numbers = (*results)[0].to_vector<float>();
 *
 * All these classes except Client can be copied, which only counts references. A default-constructed object owns
 * nothing.
 */

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "collet.h"

namespace collet {

/** Why something failed. */
struct Error {
  collet_status code = COLLET_OK;
  std::string message;
};

/** A T, or an Error. */
template <typename T>
class Result {
 public:
  /** Makes a success. */
  Result(T value) : state_(std::move(value)) {}
  /** Makes a failure. */
  Result(Error error) : state_(std::move(error)) {}
  /** True on success. */
  explicit operator bool() const { return state_.index() == 0; }
  /** Returns the value. Requires success. */
  T& operator*() { return *std::get_if<0>(&state_); }
  /** Returns the value. Requires success. */
  const T& operator*() const { return *std::get_if<0>(&state_); }
  /** Returns the value. Requires success. */
  T* operator->() { return std::get_if<0>(&state_); }
  /** Returns the error. Requires a failure. */
  const Error& error() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, Error> state_;
};

/** The value of a Result of functions that return nothing. */
struct Done {};

namespace detail {

/** Owns one reference to a counted handle. */
template <typename T, void (*Retain)(T*), void (*Release)(T*)>
class Owner {
 public:
  Owner() = default;
  /** Takes over a reference. */
  explicit Owner(T* handle) : handle_(handle) {}
  Owner(const Owner& other) : handle_(other.handle_) {
    if (handle_) Retain(handle_);
  }
  Owner(Owner&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Owner& operator=(Owner other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owner() {
    if (handle_) Release(handle_);
  }
  /** Returns the handle, which this object still owns. */
  T* get() const { return handle_; }
  /** True unless it owns nothing. */
  explicit operator bool() const { return handle_ != nullptr; }

 protected:
  T* handle_ = nullptr;
};

/** Maps a C++ type to its element type. */
template <typename T>
struct Element;
template <>
struct Element<bool> {
  static constexpr uint32_t value = COLLET_TYPE_PRED;
};
template <>
struct Element<int8_t> {
  static constexpr uint32_t value = COLLET_TYPE_S8;
};
template <>
struct Element<int16_t> {
  static constexpr uint32_t value = COLLET_TYPE_S16;
};
template <>
struct Element<int32_t> {
  static constexpr uint32_t value = COLLET_TYPE_S32;
};
template <>
struct Element<int64_t> {
  static constexpr uint32_t value = COLLET_TYPE_S64;
};
template <>
struct Element<uint8_t> {
  static constexpr uint32_t value = COLLET_TYPE_U8;
};
template <>
struct Element<uint16_t> {
  static constexpr uint32_t value = COLLET_TYPE_U16;
};
template <>
struct Element<uint32_t> {
  static constexpr uint32_t value = COLLET_TYPE_U32;
};
template <>
struct Element<uint64_t> {
  static constexpr uint32_t value = COLLET_TYPE_U64;
};
template <>
struct Element<float> {
  static constexpr uint32_t value = COLLET_TYPE_F32;
};
template <>
struct Element<double> {
  static constexpr uint32_t value = COLLET_TYPE_F64;
};

inline Error failure(collet_status code, const collet_error& error) {
  return {code, error.message};
}

}  // namespace detail

/** An event that comes once, with success or failure. */
class Event : public detail::Owner<collet_event, collet_event_retain, collet_event_release> {
 public:
  using Owner::Owner;
  /** True if the event has come. */
  bool is_ready() const { return collet_event_is_ready(handle_) != 0; }
  /** Blocks until the event has come, and returns its outcome. */
  Result<Done> wait() const {
    collet_error error;
    const collet_status code = collet_event_wait(handle_, &error);
    if (code != COLLET_OK) return detail::failure(code, error);
    return Done{};
  }
};

/** An array on a device. */
class Buffer : public detail::Owner<collet_buffer, collet_buffer_retain, collet_buffer_release> {
 public:
  using Owner::Owner;
  /** Returns element type and dimensions; the dimensions live as long as the buffer. */
  collet_array_type type() const { return collet_buffer_type(handle_); }
  /** Returns the bytes of the buffer's data. */
  uint64_t bytes() const { return collet_buffer_bytes(handle_); }
  /** Returns the number of the buffer's device. */
  uint32_t device() const { return collet_buffer_device(handle_); }
  /** True if the buffer has been donated or deleted. */
  bool is_deleted() const { return collet_buffer_is_deleted(handle_) != 0; }
  /** Returns the event that comes when the data is available. */
  Event ready() const { return Event(collet_buffer_ready(handle_)); }
  /** Copies the data to `out`, which has `size` bytes. Blocks. */
  Result<Done> to_host(void* out, uint64_t size) const {
    collet_error error;
    const collet_status code = collet_buffer_to_host(handle_, out, size, nullptr, &error);
    if (code != COLLET_OK) return detail::failure(code, error);
    return Done{};
  }
  /** Returns the elements. INVALID_ARGUMENT if their type is not T. Blocks. */
  template <typename T>
  Result<std::vector<T>> to_vector() const {
    if (type().element != detail::Element<T>::value)
      return Error{COLLET_INVALID_ARGUMENT, std::string("the elements are ") + collet_type_name(type().element)};
    // A vector of bool has no array of its elements.
    using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
    std::vector<Stored> out(bytes() / sizeof(T));
    const Result<Done> copied = to_host(out.data(), out.size() * sizeof(T));
    if (!copied) return copied.error();
    if constexpr (std::is_same_v<T, bool>) {
      return std::vector<bool>(out.begin(), out.end());
    } else {
      return out;
    }
  }
};

/** A program as it was read. */
class Module : public detail::Owner<collet_module, collet_module_retain, collet_module_release> {
 public:
  using Owner::Owner;
  /** Reads a program in any format; `file` is its name in messages. */
  static Result<Module> read(std::string_view bytes, const char* file = nullptr) {
    collet_read_options options{};
    options.struct_size = sizeof options;
    options.file = file;
    return read(bytes, options);
  }
  /** Reads a program with the given options. */
  static Result<Module> read(std::string_view bytes, const collet_read_options& options) {
    collet_error error;
    collet_module* out = nullptr;
    const collet_status code = collet_module_read(bytes.data(), bytes.size(), &options, &out, nullptr, &error);
    if (code != COLLET_OK) return detail::failure(code, error);
    return Module(out);
  }
  /** Returns the number of flattened parameters. */
  uint32_t parameter_count() const { return collet_module_parameter_count(handle_); }
  /** Returns the type of a flattened parameter. */
  collet_array_type parameter(uint32_t index) const { return collet_module_parameter(handle_, index); }
  /** Returns the number of flattened results. */
  uint32_t result_count() const { return collet_module_result_count(handle_); }
  /** Returns the type of a flattened result. */
  collet_array_type result(uint32_t index) const { return collet_module_result(handle_, index); }
};

/** A compiled program. */
class Executable : public detail::Owner<collet_executable, collet_executable_retain, collet_executable_release> {
 public:
  using Owner::Owner;
  /** Returns facts about the executable. */
  collet_executable_facts facts() const {
    collet_executable_facts out{};
    out.struct_size = sizeof out;
    collet_executable_facts_get(handle_, &out, nullptr);
    return out;
  }
  /** Returns the execution plan as readable text, or as JSON. */
  std::string explain(bool json = false) const {
    collet_blob* blob = nullptr;
    if (collet_executable_explain(handle_, json ? 1 : 0, &blob, nullptr) != COLLET_OK) return {};
    std::string out(collet_blob_data(blob), collet_blob_size(blob));
    collet_blob_release(blob);
    return out;
  }
  /** Returns the executable as bytes, which Client::load reads. */
  Result<std::string> serialize() const {
    collet_error error;
    collet_blob* blob = nullptr;
    const collet_status code = collet_executable_serialize(handle_, &blob, &error);
    if (code != COLLET_OK) return detail::failure(code, error);
    std::string out(collet_blob_data(blob), collet_blob_size(blob));
    collet_blob_release(blob);
    return out;
  }
  /** Runs the program with the arguments of this process's participants. The results are buffers whose data may come later. See
   * collet_execute. */
  Result<std::vector<Buffer>> run(const std::vector<Buffer>& arguments, collet_execute_options options = {}) const {
    options.struct_size = sizeof options;
    const collet_executable_facts f = facts();
    // A library without the field leaves it 0, and has one process.
    const size_t participants = f.local_participants ? f.local_participants : f.participants;
    if (arguments.size() != f.argument_count * participants)
      return Error{COLLET_INVALID_ARGUMENT, std::to_string(arguments.size()) + " arguments; the program takes " +
                                                std::to_string(f.argument_count * participants)};
    std::vector<collet_buffer*> in, out(f.result_count * participants);
    for (const Buffer& b : arguments) in.push_back(b.get());
    collet_error error;
    const collet_status code = collet_execute(handle_, &options, in.data(), out.data(), &error);
    if (code != COLLET_OK) return detail::failure(code, error);
    std::vector<Buffer> results;
    for (collet_buffer* b : out) results.emplace_back(b);
    return results;
  }
};

/** An opened backend. It can be moved, but not copied. */
class Client {
 public:
  /** Opens a backend. See collet_client_options for both names; null selects the default. */
  static Result<Client> open(const char* backend = nullptr, const char* fallback = nullptr) {
    collet_client_options options{};
    options.struct_size = sizeof options;
    options.backend = backend;
    options.fallback = fallback;
    return open(options);
  }
  /** Opens a backend with the given options. */
  static Result<Client> open(const collet_client_options& options) {
    collet_error error;
    collet_client* out = nullptr;
    const collet_status code = collet_client_open(&options, &out, &error);
    if (code != COLLET_OK) return detail::failure(code, error);
    return Client(out);
  }
  /** Takes over a client. */
  explicit Client(collet_client* handle) : handle_(handle) {}
  Client(Client&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Client& operator=(Client&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Client() { collet_client_close(handle_); }

  /** Returns the handle, which this object still owns. */
  collet_client* get() const { return handle_; }
  /** Returns facts about the client. */
  collet_client_info info() const {
    collet_client_info out{};
    out.struct_size = sizeof out;
    collet_client_info_get(handle_, &out, nullptr);
    return out;
  }
  /** Compiles a module, see collet_compile. */
  Result<Executable> compile(const Module& module, collet_compile_request request = {}) const {
    request.struct_size = sizeof request;
    collet_error error;
    collet_executable* out = nullptr;
    const collet_status code = collet_compile(handle_, module.get(), &request, &out, &error);
    if (code != COLLET_OK) return detail::failure(code, error);
    return Executable(out);
  }
  /** Loads an executable, see collet_executable_load. */
  Result<Executable> load(std::string_view bytes, collet_compile_request request = {}) const {
    request.struct_size = sizeof request;
    collet_error error;
    collet_executable* out = nullptr;
    const collet_status code = collet_executable_load(handle_, bytes.data(), bytes.size(), &request, &out, &error);
    if (code != COLLET_OK) return detail::failure(code, error);
    return Executable(out);
  }
  /** Copies a dense array of any element type to a device. */
  Result<Buffer> upload(collet_array_type type, const void* data, uint32_t device = 0) const {
    collet_host_array array{};
    array.struct_size = sizeof array;
    array.element = type.element;
    array.rank = type.rank;
    array.dims = type.dims;
    array.data = data;
    collet_error error;
    collet_buffer* out = nullptr;
    const collet_status code = collet_buffer_from_host(handle_, device, COLLET_NONE, &array, &out, &error);
    if (code != COLLET_OK) return detail::failure(code, error);
    return Buffer(out);
  }
  /** Copies an array of T to a device; `data` has the product of `dims` elements. */
  template <typename T>
  Result<Buffer> upload(const std::vector<int64_t>& dims, const T* data, uint32_t device = 0) const {
    return upload({detail::Element<T>::value, static_cast<uint32_t>(dims.size()), dims.data()}, data, device);
  }

 private:
  collet_client* handle_;
};

}  // namespace collet

#endif
