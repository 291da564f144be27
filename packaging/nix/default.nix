# The libraries and the command. `nix-build packaging/nix`
{ pkgs ? import <nixpkgs> { } }:

pkgs.rustPlatform.buildRustPackage {
  pname = "mallard";
  version = "0.1.0";
  src = pkgs.lib.cleanSourceWith {
    src = ../..;
    filter = path: type: !(type == "directory" && builtins.elem (baseNameOf path) [ "build" "results" ".git" ]);
  };
  cargoLock.lockFile = ../../Cargo.lock;
  nativeBuildInputs = [ pkgs.cmake pkgs.ninja ];

  # Cargo builds the command, and CMake the libraries, the recorder and the player.
  dontUseCmakeConfigure = true;
  cargoBuildFlags = [ "--package" "mallard-cli" ];
  doCheck = false; # ./x test, outside of a package
  postBuild = ''
    cmake -S . -B libraries -G Ninja -DCMAKE_BUILD_TYPE=Release -DMALLARD_BUILD_COMMAND=OFF \
      -DCMAKE_INSTALL_PREFIX=$out -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_INSTALL_INCLUDEDIR=include
    cmake --build libraries
  '';
  postInstall = ''
    cmake --install libraries
    $out/bin/mallard pages $out/share
  '';

  meta = {
    description = "Memory allocation: local allocators for C++20 and C, a malloc, and the command mallard";
    homepage = "https://mallard.example/mallard";
    license = with pkgs.lib.licenses; [ mit asl20 ];
    platforms = [ "x86_64-linux" ];
    mainProgram = "mallard";
  };
}
