// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "mutate.h"

#include <limits>

namespace tenonnx::fuzz {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

namespace {

void collect(Message& message, std::vector<Message*>& messages, std::vector<std::string>& strings) {
  messages.push_back(&message);
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        collect(field->is_repeated() ? *reflection.MutableRepeatedMessage(&message, field, i)
                                     : *reflection.MutableMessage(&message, field),
                messages, strings);
      } else if (field->type() == FieldDescriptor::TYPE_STRING && strings.size() < 5000) {
        strings.push_back(field->is_repeated() ? reflection.GetRepeatedString(message, field, i)
                                               : reflection.GetString(message, field));
      }
    }
  }
}

}  // namespace

void Mutator::bytes(std::string& text) {
  for (std::size_t n = 1 + below(4); n > 0 && !text.empty(); --n) {
    const std::size_t at = below(text.size());
    switch (below(6)) {
      case 0:
        text[at] = static_cast<char>(random_());
        break;
      case 1:
        text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 2:
        text.erase(at, 1 + below(64));
        break;
      case 3:
        text.insert(at, text.substr(below(text.size()), 1 + below(256)));
        break;
      case 4: {
        const std::string from = text.substr(below(text.size()), 1 + below(32));
        text.replace(at, from.size(), from);
        break;
      }
      default:
        // Cuts near the end as often as anywhere: there lie the fields that are written last.
        text.resize(below(2) == 0 ? at
                                  : text.size() - below(std::min<std::size_t>(64, text.size())));
        break;
    }
  }
}

std::int64_t Mutator::number() {
  static const std::vector<std::int64_t> kLimits = {
      0,         1,         -1,        2,         3,         7,         16,
      27,        99,        127,       128,       255,       65535,     65536,
      65537,     1 << 20,   1LL << 30, INT32_MAX, INT32_MIN, 1LL << 32, 1LL << 40,
      1LL << 56, 1LL << 62, INT64_MAX, INT64_MIN};
  if (below(4) == 0) return static_cast<std::int64_t>(random_()) - (1LL << 31);
  return one_of(kLimits);
}

void Mutator::message(Message& message, const std::vector<std::string>& words, std::size_t most) {
  for (std::size_t n = 1 + below(most); n > 0; --n) damage_one(message, words);
}

void Mutator::damage_one(Message& root, const std::vector<std::string>& words) {
  std::vector<Message*> messages;
  std::vector<std::string> pool = words;
  collect(root, messages, pool);
  pool.emplace_back();
  Message& target = *one_of(messages);
  const auto* descriptor = target.GetDescriptor();
  std::vector<const FieldDescriptor*> present;
  target.GetReflection()->ListFields(target, &present);
  // Mostly what is there; now and then a field that the writer never set.
  const FieldDescriptor* field =
      present.empty() || below(4) == 0
          ? descriptor->field(
                static_cast<int>(below(static_cast<std::size_t>(descriptor->field_count()))))
          : one_of(present);
  damage_field(target, *field, pool);
}

void Mutator::damage_field(Message& message, const FieldDescriptor& field,
                           const std::vector<std::string>& pool) {
  const Reflection& reflection = *message.GetReflection();
  if (below(8) == 0) {
    reflection.ClearField(&message, &field);
    return;
  }
  if (field.is_repeated()) {
    const int size = reflection.FieldSize(message, &field);
    const int at = static_cast<int>(below(static_cast<std::size_t>(size)));
    const std::size_t action = below(4);
    if (size > 1 && action == 0) {
      reflection.SwapElements(&message, &field, at, size - 1);
      reflection.RemoveLast(&message, &field);
      return;
    }
    if (size > 1 && action == 1) {
      reflection.SwapElements(&message, &field, at,
                              static_cast<int>(below(static_cast<std::size_t>(size))));
      return;
    }
    if (size > 0 && action == 2 && field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      const Message& from = reflection.GetRepeatedMessage(message, &field, at);
      const std::unique_ptr<Message> copy(from.New());
      copy->CopyFrom(from);
      reflection.AddMessage(&message, &field)->CopyFrom(*copy);
      return;
    }
  }
  // A number, a text or an empty message: set, or added to a repeated field.
  const int size = field.is_repeated() ? reflection.FieldSize(message, &field) : 0;
  const int at = static_cast<int>(below(static_cast<std::size_t>(size)));
  const bool add = field.is_repeated() && (size == 0 || below(3) == 0);
#define TENONNX_FUZZ_SET(Name, value)                          \
  if (!field.is_repeated())                                    \
    reflection.Set##Name(&message, &field, value);             \
  else if (add)                                                \
    reflection.Add##Name(&message, &field, value);             \
  else                                                         \
    reflection.SetRepeated##Name(&message, &field, at, value); \
  break
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      TENONNX_FUZZ_SET(Int32, static_cast<std::int32_t>(number()));
    case FieldDescriptor::CPPTYPE_INT64:
      TENONNX_FUZZ_SET(Int64, number());
    case FieldDescriptor::CPPTYPE_UINT32:
      TENONNX_FUZZ_SET(UInt32, static_cast<std::uint32_t>(number()));
    case FieldDescriptor::CPPTYPE_UINT64:
      TENONNX_FUZZ_SET(UInt64, static_cast<std::uint64_t>(number()));
    case FieldDescriptor::CPPTYPE_BOOL:
      TENONNX_FUZZ_SET(Bool, below(2) == 0);
    case FieldDescriptor::CPPTYPE_ENUM:
      TENONNX_FUZZ_SET(EnumValue, static_cast<int>(below(30)));
    case FieldDescriptor::CPPTYPE_FLOAT:
      TENONNX_FUZZ_SET(Float, static_cast<float>(number()));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      TENONNX_FUZZ_SET(Double, static_cast<double>(number()));
    case FieldDescriptor::CPPTYPE_STRING: {
      std::string text = one_of(pool);
      if (below(3) == 0) bytes(text);
      TENONNX_FUZZ_SET(String, text);
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      if (add)
        reflection.AddMessage(&message, &field);
      else if (!field.is_repeated())
        reflection.MutableMessage(&message, &field)->Clear();
      break;
  }
#undef TENONNX_FUZZ_SET
}

}  // namespace tenonnx::fuzz
