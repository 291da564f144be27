# The libraries and the command, for Homebrew on Linux.
class Mallard < Formula
  desc "Memory allocation: local allocators, a malloc, and advice"
  homepage "https://mallard.example/mallard"
  url "https://mallard.example/mallard/releases/mallard-0.1.0.tar.gz"
  sha256 "SHA256"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on "cmake" => :build
  depends_on "rust" => :build
  depends_on arch: :x86_64
  depends_on :linux

  def install
    system "cmake", "-S", ".", "-B", "build", *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  test do
    (testpath/"scratch.cpp").write <<~CPP
      #include <mallard/mallard.hpp>
      int main()
      {
          mallard::arena<> scratch;
          return scratch.make<int>(7) == 7 ? 0 : 1;
      }
    CPP
    system ENV.cxx, "-std=c++20", "scratch.cpp", "-I#{include}", "-L#{lib}", "-lmallard", "-o", "scratch"
    system "./scratch"
    assert_match version.to_s, shell_output("#{bin}/mallard --version")
  end
end
