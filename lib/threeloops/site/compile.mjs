// Compile Python for the Python of the pages, with that Python: node compile.mjs PYODIDE FOLDER
import {pathToFileURL} from 'node:url';
import {join} from 'node:path';

const [pyodide, folder] = process.argv.slice(2);
const {loadPyodide} = await import(pathToFileURL(join(pyodide, 'pyodide.mjs')));
const python = await loadPyodide({indexURL: pyodide + '/'});
python.mountNodeFS('/code', folder);
// in its own memory: every touch of a file of ours costs as much as a short file takes to compile.
// No docstrings: nobody reads them there, and they are half of the bytes
const fine = python.runPython(`
import compileall, pathlib, shutil
shutil.copytree('/code', '/own')
fine = compileall.compile_dir('/own', stripdir='/own', quiet=1, legacy=True, optimize=2)
for made in pathlib.Path('/own').rglob('*.pyc'):
    pathlib.Path('/code', made.relative_to('/own')).write_bytes(made.read_bytes())
fine`);
process.exit(fine ? 0 : 1);
